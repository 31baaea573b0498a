// print.c: printf of kernels, by OpenCL C 1.2's rules: C's conversions, %v4f for vectors, hh, h, hl
// and l for the size of an element. The values have types, so that a value is converted if the
// format does not fit it.

#include "exec.h"

static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

// print_spec is one conversion specification.
struct print_spec {
  char flags[32]; // "%", flags, width and precision for C's printf
  uint32_t width; // number of elements of a vector, 0 for a scalar
  char size;      // size of an element: 'c' for hh, 'h', 'i' for hl, 'l', or 0
  char conv;
};

// print_out is the text so far, in the worker's buffer, so that no memory is lost if reading a bad
// string faults.
struct print_out {
  struct worker *w;
  size_t used;
};

static void print_put(struct print_out *o, const char *text, size_t n) {
  if (o->used + n + 1 > o->w->text_room) {
    size_t room = (o->used + n + 1) * 2;
    o->w->in_kernel = 0; // a fault inside realloc is not one of the kernel
    char *t = realloc(o->w->text, room);
    o->w->in_kernel = 1;
    if (t == NULL)
      return;
    o->w->text = t;
    o->w->text_room = room;
  }
  memcpy(o->w->text + o->used, text, n);
  o->used += n;
}

// print_parse reads a conversion specification after its '%'. It returns a pointer to the text
// after it, or NULL if it is not valid.
static const char *print_parse(const char *f, struct print_spec *s) {
  size_t n = 0;
  memset(s, 0, sizeof *s);
  s->flags[n++] = '%';
  for (; *f != 0 && strchr("-+ #0123456789.", *f) != NULL; f++)
    if (n < sizeof s->flags - 8)
      s->flags[n++] = *f;
  if (*f == 'v') {
    for (f++; *f >= '0' && *f <= '9'; f++)
      s->width = s->width * 10 + (uint32_t)(*f - '0');
    if (s->width < 2 || s->width > 16)
      return NULL;
  }
  if (f[0] == 'h' && (f[1] == 'h' || f[1] == 'l')) {
    s->size = f[1] == 'h' ? 'c' : 'i';
    f += 2;
  } else if (*f == 'h' || *f == 'l') {
    s->size = *f++;
  }
  s->conv = *f;
  return *f != 0 && strchr("diouxXfFeEgGaAcsp", *f) != NULL ? f + 1 : NULL;
}

static double print_half(uint16_t h) {
  int e = h >> 10 & 31, m = h & 1023;
  double v = e == 31  ? (m != 0 ? __builtin_nan("") : __builtin_inf())
             : e == 0 ? m * 0x1p-24
                      : (1024 + m) * __builtin_ldexp(1, e - 25);
  return h & 0x8000 ? -v : v;
}

// print_number returns lane i of a value as the widest integer, and as a double in *real.
static int64_t print_number(const concord_value *v, uint32_t i, double *real) {
  const char *p = (const char *)v->data + (size_t)i * v->bytes;
  bool is_signed = v->kind == CONCORD_VALUE_SIGNED;
  uint64_t u = 0;
  if (v->kind == CONCORD_VALUE_FLOAT) {
    float f = 0;
    if (v->bytes == 8)
      memcpy(real, p, 8);
    else if (v->bytes == 4)
      memcpy(&f, p, 4), *real = f;
    else
      memcpy(&u, p, 2), *real = print_half((uint16_t)u);
    return *real > -9e18 && *real < 9e18 ? (int64_t)*real : 0;
  }
  if (v->kind == CONCORD_VALUE_POINTER || v->kind == CONCORD_VALUE_STRING)
    u = (uint64_t)(uintptr_t)v->data;
  else
    memcpy(&u, p, v->bytes <= 8 ? v->bytes : 8); // all supported hosts are little-endian
  int shift = 64 - 8 * (v->bytes < 8 ? v->bytes : 8);
  int64_t n = is_signed ? (int64_t)(u << shift) >> shift : (int64_t)u;
  *real = is_signed ? (double)n : (double)u;
  return n;
}

// print_narrow truncates an integer to the size that the format names, or else to that of the
// value.
static uint64_t print_narrow(int64_t n, const struct print_spec *s, uint32_t bytes) {
  if (s->size == 'c')
    bytes = 1;
  else if (s->size == 'h')
    bytes = 2;
  else if (s->size == 'i')
    bytes = 4;
  else if (s->size == 'l')
    bytes = 8;
  else if (s->width == 0 && bytes < 4)
    bytes = 4; // a scalar is promoted
  int shift = 64 - 8 * (int)(bytes > 8 ? 8 : bytes);
  uint64_t u = (uint64_t)n << shift;
  return s->conv == 'd' || s->conv == 'i' ? (uint64_t)((int64_t)u >> shift) : u >> shift;
}

// print_lane formats one lane.
static void print_lane(struct print_out *o, const struct print_spec *s, const concord_value *v,
                       uint32_t i) {
  char f[40], text[512];
  double real = 0;
  int64_t n = print_number(v, i, &real);
  int len;
  snprintf(f, sizeof f, "%s%s%c", s->flags, strchr("diouxX", s->conv) != NULL ? "ll" : "", s->conv);
  if (strchr("fFeEgGaA", s->conv) != NULL)
    len = snprintf(text, sizeof text, f, real);
  else if (s->conv == 'c')
    len = snprintf(text, sizeof text, f, (int)n);
  else if (s->conv == 'p')
    len = snprintf(text, sizeof text, f, (void *)(uintptr_t)n);
  else
    len = snprintf(text, sizeof text, f, (long long)print_narrow(n, s, v->bytes));
  if (len > 0)
    print_put(o, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

// print_string formats a string with width and precision; strings may be long.
static void print_string(struct print_out *o, const struct print_spec *s, const char *text) {
  int width = 0, left = 0, precision = -1;
  const char *f = s->flags + 1;
  for (; *f != 0 && strchr("-+ #0", *f) != NULL; f++)
    left |= *f == '-';
  for (; *f >= '0' && *f <= '9'; f++)
    width = width < 100000 ? width * 10 + *f - '0' : width;
  if (*f == '.')
    for (precision = 0, f++; *f >= '0' && *f <= '9'; f++)
      precision = precision < 100000 ? precision * 10 + *f - '0' : precision;
  if (text == NULL)
    text = "(null)";
  size_t n = precision >= 0 ? strnlen(text, (size_t)precision) : strlen(text);
  for (int i = left ? width : (int)n; i < width; i++)
    print_put(o, " ", 1);
  print_put(o, text, n);
  for (int i = left ? (int)n : width; i < width; i++)
    print_put(o, " ", 1);
}

static int print_format(struct print_out *o, const char *f, const concord_value *v,
                        uint32_t count) {
  uint32_t at = 0;
  for (;;) {
    size_t plain = strcspn(f, "%");
    print_put(o, f, plain);
    f += plain;
    if (*f == 0)
      return 0;
    if (f[1] == '%') {
      print_put(o, f, 1);
      f += 2;
      continue;
    }
    struct print_spec s;
    const char *rest = print_parse(f + 1, &s);
    if (rest == NULL || at == count)
      return -1;
    const concord_value *x = &v[at++];
    if (s.conv == 's') {
      if (x->kind != CONCORD_VALUE_STRING)
        return -1;
      print_string(o, &s, x->data);
    } else {
      uint32_t lanes = s.width > 0 && s.width < x->width ? s.width : s.width > 0 ? x->width : 1;
      for (uint32_t i = 0; i < lanes; i++) {
        if (i > 0)
          print_put(o, ",", 1);
        print_lane(o, &s, x, i);
      }
    }
    f = rest;
  }
}

static void print_stderr(const char *text, size_t n) {
  while (n > 0) {
    ssize_t k = write(STDERR_FILENO, text, n);
    if (k < 0 && errno != EINTR)
      return;
    if (k > 0) {
      text += k;
      n -= (size_t)k;
    }
  }
}

static int32_t print_values(concord_ctx *ctx, const char *format, const concord_value *values,
                            uint32_t count) {
  struct fiber *f = (struct fiber *)ctx;
  const concord_launch *l = f->worker->job->launch;
  struct print_out o = {f->worker, 0};
  int rc = print_format(&o, format, values, count);
  o.w->in_kernel = 0; // a fault inside the sink is not one of the kernel
  if (o.used > 0) {
    pthread_mutex_lock(&print_lock);
    if (l->print != NULL)
      l->print(l->print_user, o.w->text, o.used);
    else
      print_stderr(o.w->text, o.used);
    pthread_mutex_unlock(&print_lock);
  }
  o.w->in_kernel = 1;
  return rc;
}
