// beside.h is found next to this file first
#include "beside.h"
#include <beside.h>
int inner;
