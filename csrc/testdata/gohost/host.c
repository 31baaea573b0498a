#include "../../host/host.c"
