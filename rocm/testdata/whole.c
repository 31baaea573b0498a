// whole.c checks which bytes the shim accepts as a code object: the file named as an argument, but
// no truncated copy of it, and no copy with changes in its tables.

#include "../../csrc/rocm/rocm.c"

int main(int argc, char **argv) {
  FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (f == NULL)
    return 2;
  static unsigned char code[1 << 20];
  size_t bytes = fread(code, 1, sizeof code, f);
  fclose(f);
  if (!whole(code, bytes)) {
    fprintf(stderr, "%zu bytes that are whole were refused\n", bytes);
    return 1;
  }
  for (size_t n = 0; n < bytes; n++) {
    unsigned char *cut = malloc(n + 1); // so that a sanitizer detects reads beyond its end
    memcpy(cut, code, n);
    int taken = whole(cut, n);
    free(cut);
    if (taken) {
      fprintf(stderr, "%zu of %zu bytes were taken for whole\n", n, bytes);
      return 1;
    }
  }
  for (size_t i = 0; i < 64; i++) { // no changed byte of the header leads to a read out of bounds
    unsigned char kept = code[i];
    code[i] = 0xff;
    unsigned char *copy = malloc(bytes);
    memcpy(copy, code, bytes);
    whole(copy, bytes);
    free(copy);
    code[i] = kept;
  }
  puts("ok");
  return 0;
}
