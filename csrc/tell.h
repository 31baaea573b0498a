// tell.h has what every shim writes its errors with.

#ifndef CONCORD_TELL_H
#define CONCORD_TELL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

// tell writes an error and returns its status.
__attribute__((format(printf, 4, 5))) static inline int32_t
tell(cs_error *err, int32_t status, int32_t code, const char *format, ...) {
  err->status = status;
  err->code = code;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

static inline int32_t no_host_memory(cs_error *err) {
  return tell(err, CS_FAILED, 0, "no host memory left");
}

// check_fill refuses patterns that fill does not take, or that do not fit a size.
static inline int32_t check_fill(uint64_t bytes, uint64_t pattern_bytes, cs_error *err) {
  uint64_t n = pattern_bytes;
  if (n != 1 && n != 2 && n != 4 && n != 8)
    return tell(err, CS_INVALID, 0, "a pattern of %llu bytes", (unsigned long long)n);
  if (bytes % n != 0)
    return tell(err, CS_INVALID, 0, "%llu bytes are no multiple of a pattern of %llu",
                (unsigned long long)bytes, (unsigned long long)n);
  return CS_OK;
}

static inline void free_blob(cs_blob *blob) {
  free(blob->data);
  free(blob->log);
  memset(blob, 0, sizeof *blob);
}

#endif
