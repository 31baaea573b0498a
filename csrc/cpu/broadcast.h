// Elementwise arithmetic of two operands that are broadcast to one shape.

// Returns the number at p in the form in which arith takes it.
IN simd_word broadcast_number(int64_t type, const void *p) {
  simd_word x = {0};
  switch (type) {
  case TYPE_F32:
    x.f = *(const float *)p;
    break;
  case TYPE_F64:
    x.f = *(const double *)p;
    break;
  case TYPE_F16:
    x.f = f16_get(p);
    break;
  case TYPE_BF16:
    x.f = bf16_get(p);
    break;
  default: // bits above the size of the type are ignored
    memcpy(&x.i, p, (size_t)type_size[type]);
  }
  return x;
}

// Copies n elements that are step apart, from p on, to consecutive memory.
static void broadcast_gather(const char *p, int64_t step, int64_t size, int64_t n, char *to) {
  for (int64_t i = 0; i < n; i++, p += step * size, to += size)
    memcpy(to, p, (size_t)size);
}

// Words from 1 on: operation, first row, number of rows, out, a, b, three sizes (the second and
// third dimension of rows and the length of a row), four strides of a, four of b, 1 if the
// result is larger than the caches. Rows are along the last dimension.
EXPORT(broadcast) {
  enum { GATHERED = 1024 };
  int64_t type = w[0].i, size = type_size[type], d1 = w[7].i, d2 = w[8].i, n = w[9].i;
  double beside[2][GATHERED];
  for (int64_t row = w[2].i; row < w[2].i + w[3].i; row++)
    for (int64_t j = 0, m; j < n; j += m) {
      simd_word one[9] = {w[0], w[1], {0}, {.p = (char *)w[4].p + (row * n + j) * size}, {0}, {0}, {0}, {0}, w[18]};
      m = n - j;
      for (int k = 0; k < 2; k++)
        if (w[13 + 4 * k].i > 1 && m > GATHERED)
          m = GATHERED;
      for (int k = 0; k < 2; k++) {
        const simd_word *stride = w + 10 + 4 * k;
        const char *p = w[5 + k].p;
        p += (row / d2 / d1 * stride[0].i + row / d2 % d1 * stride[1].i + row % d2 * stride[2].i + j * stride[3].i) * size;
        if (stride[3].i == 0)
          one[6 + k] = broadcast_number(type, p);
        else if (stride[3].i == 1)
          one[4 + k].p = (void *)p;
        else {
          broadcast_gather(p, stride[3].i, size, m, (char *)beside[k]);
          one[4 + k].p = beside[k];
        }
      }
      one[2].i = m;
      if (!one[4].p && !one[5].p) { // both operands are one number: one of them has to be in memory
        const char *p = w[5].p;
        p += (row / d2 / d1 * w[10].i + row / d2 % d1 * w[11].i + row % d2 * w[12].i) * size;
        m = m < GATHERED ? m : GATHERED;
        broadcast_gather(p, 0, size, m, (char *)beside[0]);
        one[4].p = beside[0], one[2].i = m;
      }
      arith_row(one);
    }
  past_end();
}
