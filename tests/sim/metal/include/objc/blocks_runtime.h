// blocks_runtime.h is what GNUstep asks for by this name: the blocks runtime, whose header Debian
// keeps elsewhere.

#include <Block.h>
