//go:build cgo && linux

package main

// Hand-written loops that show the limits of the machine: loops with the same reads and writes as a
// kernel for the memory, and multiply-adds in registers for the processor.

/*
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX512 __attribute__((target("avx512f,avx2,fma")))

// The pointers are aligned to 32 bytes and n is a multiple of 32.
AVX2 static void loop_add(float *c, const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i += 8)
    _mm256_stream_ps(c + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i)));
  _mm_sfence();
}
AVX2 static void loop_copy(float *c, const float *a, size_t n) {
  for (size_t i = 0; i < n; i += 8)
    _mm256_stream_ps(c + i, _mm256_load_ps(a + i));
  _mm_sfence();
}
AVX2 static void loop_narrow(uint16_t *c, const float *a, size_t n) {
  for (size_t i = 0; i < n; i += 8)
    _mm_stream_si128((__m128i *)(c + i), _mm256_cvtps_ph(_mm256_load_ps(a + i), 0));
  _mm_sfence();
}
AVX2 static float loop_read(const float *a, size_t n) {
  __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < n; i += 32) {
    s0 = _mm256_add_ps(s0, _mm256_load_ps(a + i));
    s1 = _mm256_add_ps(s1, _mm256_load_ps(a + i + 8));
    s2 = _mm256_add_ps(s2, _mm256_load_ps(a + i + 16));
    s3 = _mm256_add_ps(s3, _mm256_load_ps(a + i + 24));
  }
  float x[8];
  _mm256_storeu_ps(x, _mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3)));
  return x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

// Ten registers times 2·n operations each; the compiler must not see that they are
// the same every time.
#define PEAK(NAME, TARGET, V, SET, FMA, ADD, FIRST)                                                \
  TARGET static double NAME(size_t n) {                                                            \
    V b = SET(0.999f), a = SET(1.0f), c[10];                                                       \
    for (int j = 0; j < 10; j++)                                                                   \
      c[j] = SET((float)j);                                                                        \
    for (size_t i = 0; i < n; i++) {                                                               \
      c[0] = FMA(c[0], b, a), c[1] = FMA(c[1], b, a), c[2] = FMA(c[2], b, a);                      \
      c[3] = FMA(c[3], b, a), c[4] = FMA(c[4], b, a), c[5] = FMA(c[5], b, a);                      \
      c[6] = FMA(c[6], b, a), c[7] = FMA(c[7], b, a), c[8] = FMA(c[8], b, a);                      \
      c[9] = FMA(c[9], b, a);                                                                      \
    }                                                                                              \
    for (int j = 1; j < 10; j++)                                                                   \
      c[0] = ADD(c[0], c[j]);                                                                      \
    return FIRST(c[0]);                                                                            \
  }
PEAK(peak_avx512, AVX512, __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_reduce_add_ps)
PEAK(peak_avx2, AVX2, __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_cvtss_f32)

static int loop_here(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static double loop_peak(size_t n, int lanes) { return lanes == 16 ? peak_avx512(n) : peak_avx2(n); }
#else
static void loop_add(float *c, const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    c[i] = a[i] + b[i];
}
static void loop_copy(float *c, const float *a, size_t n) { memcpy(c, a, 4 * n); }
static void loop_narrow(uint16_t *c, const float *a, size_t n) {
  for (size_t i = 0; i < n; i++)
    c[i] = (uint16_t)a[i];
}
static float loop_read(const float *a, size_t n) {
  float s[32] = {0};
  for (size_t i = 0; i < n; i += 32)
    for (size_t j = 0; j < 32; j++)
      s[j] += a[i + j];
  return s[0];
}
static int loop_here(void) { return 1; }
static double loop_peak(size_t n, int lanes) {
  float x[160];
  for (int j = 0; j < 10 * lanes; j++)
    x[j] = (float)j;
  for (size_t i = 0; i < n; i++)
    for (int j = 0; j < 10 * lanes; j++)
      x[j] = x[j] * 0.999f + 1.0f;
  return x[0];
}
#endif

// What kernels of a user do, as a C programmer writes it, at -O3.
#if defined(__x86_64__) && defined(__clang__)
#define PLAIN __attribute__((target("avx2,fma,f16c")))
#elif defined(__x86_64__)
#define PLAIN __attribute__((target("avx2,fma,f16c"), optimize("O3,fp-contract=off")))
#else
#define PLAIN
#endif
PLAIN static void plain_saxpy(float a, const float *restrict x, float *restrict y, size_t n) {
  for (size_t i = 0; i < n; i++)
    y[i] = a * x[i] + y[i];
}
// Rows lo to hi of w; in one dimension one row of both, whose neighbours are w apart.
PLAIN static void plain_stencil(const float *restrict in, float *restrict out, size_t w, size_t lo, size_t hi) {
  for (size_t y = lo; y < hi; y++)
    for (size_t i = y * w + 1; i < y * w + w - 1; i++)
      out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}
#cgo noescape plain_saxpy
#cgo nocallback plain_saxpy
#cgo noescape plain_stencil
#cgo nocallback plain_stencil
#cgo noescape loop_add
#cgo nocallback loop_add
#cgo noescape loop_copy
#cgo nocallback loop_copy
#cgo noescape loop_narrow
#cgo nocallback loop_narrow
#cgo noescape loop_read
#cgo nocallback loop_read
*/
import "C"

import (
	"sync"
	"unsafe"
)

// haveLoops reports whether the loops run on this processor.
var haveLoops = C.loop_here() != 0

// onThreads gives each thread a part of n floats, a multiple of 32 of them.
func onThreads(threads, n int, f func(lo, n int)) {
	var wg sync.WaitGroup
	part := (n/threads + 31) &^ 31
	for lo := 0; lo < n; lo += part {
		wg.Go(func() { f(lo, min(part, n-lo)) })
	}
	wg.Wait()
}

func floatAt(b []byte, i int) *C.float { return (*C.float)(unsafe.Pointer(&b[4*i])) }

// addLoop is c = a + b; the lengths are multiples of 128 bytes.
func addLoop(threads int, a, b, c []byte) {
	onThreads(threads, len(a)/4, func(lo, n int) {
		C.loop_add(floatAt(c, lo), floatAt(a, lo), floatAt(b, lo), C.size_t(n))
	})
}

// copyLoop is c = a.
func copyLoop(threads int, a, c []byte) {
	onThreads(threads, len(a)/4, func(lo, n int) { C.loop_copy(floatAt(c, lo), floatAt(a, lo), C.size_t(n)) })
}

// narrowLoop converts the floats of a to halves in c.
func narrowLoop(threads int, a, c []byte) {
	onThreads(threads, len(a)/4, func(lo, n int) {
		C.loop_narrow((*C.uint16_t)(unsafe.Pointer(&c[2*lo])), floatAt(a, lo), C.size_t(n))
	})
}

// readLoop reads all of a.
func readLoop(threads int, a []byte) {
	onThreads(threads, len(a)/4, func(lo, n int) { C.loop_read(floatAt(a, lo), C.size_t(n)) })
}

// saxpyLoop is y = a·x + y.
func saxpyLoop(threads int, a float32, x, y []byte) {
	onThreads(threads, len(x)/4, func(lo, n int) {
		C.plain_saxpy(C.float(a), floatAt(x, lo), floatAt(y, lo), C.size_t(n))
	})
}

// stencilLoop is five points of a picture of width w, but for its edges.
func stencilLoop(threads, w int, in, out []byte) {
	h := len(in) / 4 / w
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			C.plain_stencil(floatAt(in, 0), floatAt(out, 0), C.size_t(w), C.size_t(1+(h-2)*t/threads),
				C.size_t(1+(h-2)*(t+1)/threads))
		})
	}
	wg.Wait()
}

// peakLoop does multiply-adds in registers of so many floats, and returns the number of operations.
func peakLoop(threads, lanes int) float64 {
	const turns = 1 << 20
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() { C.loop_peak(turns, C.int(lanes)) })
	}
	wg.Wait()
	return 2 * 10 * turns * float64(lanes) * float64(threads)
}
