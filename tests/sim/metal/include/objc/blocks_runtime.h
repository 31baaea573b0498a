// blocks_runtime.h is the name under which GNUstep includes the header of the blocks runtime;
// Debian installs it under another one.

#include <Block.h>
