// driver_metal.h: driver.c with -DMETAL: a Metal rendering on the simulated Metal of tests/sim/metal.
#include "../../../../tests/sim/metal/compile.h"

// If a kernel has more values than Metal has buffers, all are in one struct. A vector of three
// already has the size of four.
static size_t pack(arg *args, int n, char *out) {
  size_t at = 0;
  for (int i = 0; i < n; i++) {
    if (args[i].is_buf || args[i].is_local) continue;
    size_t align = args[i].bytes & (0 - args[i].bytes);
    at = (at + align - 1) / align * align;
    memcpy(out + at, args[i].data, args[i].bytes);
    at += args[i].bytes;
  }
  return at;
}

static int run(char *program, char *name, size_t *g, size_t *l, arg *args, int n) {
  static char text[1 << 22], log[1 << 16], entry[256];
  FILE *f = fopen(program, "rb");
  if (!f) return 5;
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  simmetal_library *lib = simmetal_compile(text, log, sizeof log);
  if (!lib) { fprintf(stderr, "%s\n", log); return 3; }
  if (!*name) return 0; // compiled only
  snprintf(entry, sizeof entry, "cc_kernel_%s", name);
  const simmetal_kernel *k = simmetal_find(lib, entry);
  if (!k) { fprintf(stderr, "no kernel %s\n", entry); return 3; }
  static simmetal_args a;
  static _Alignas(128) char values[8192];
  int slot = 0, block = 0, places = 0, pointers = 0;
  for (int i = 0; i < n; i++) places += !args[i].is_local, pointers += args[i].is_buf;
  for (int i = 0; i < n; i++) {
    if (args[i].is_local) a.threadgroup[block++] = (args[i].bytes + 15) / 16 * 16;
    else if (args[i].is_buf || places <= SIMMETAL_BUFFERS) a.buffer[slot++] = args[i].data;
  }
  if (places > SIMMETAL_BUFFERS) {
    pack(args, n, values);
    a.buffer[pointers] = values;
  }
  uint32_t groups[3], group[3];
  for (int d = 0; d < 3; d++) groups[d] = (uint32_t)(g[d] / l[d]), group[d] = (uint32_t)l[d];
  int rc = simmetal_run(k, groups, group, &a, log, sizeof log);
  if (rc) fprintf(stderr, "%s\n", log);
  return rc;
}
