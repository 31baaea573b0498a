//go:build cgo && linux

package main

// The best loops by hand with the same reads and writes: what memory allows.

/*
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
// The pointers are aligned to 32 bytes and n is a multiple of 32.
__attribute__((target("avx2"))) static void loop_add(float *c, const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i += 8)
    _mm256_stream_ps(c + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i)));
  _mm_sfence();
}
__attribute__((target("avx2"))) static float loop_read(const float *a, size_t n) {
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
#else
static void loop_add(float *c, const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    c[i] = a[i] + b[i];
}
static float loop_read(const float *a, size_t n) {
  float s[32] = {0};
  for (size_t i = 0; i < n; i += 32)
    for (size_t j = 0; j < 32; j++)
      s[j] += a[i + j];
  return s[0];
}
#endif
#cgo noescape loop_add
#cgo nocallback loop_add
#cgo noescape loop_read
#cgo nocallback loop_read
*/
import "C"

import (
	"sync"
	"unsafe"
)

const haveLoops = true

// onThreads gives each thread a part of n floats, a multiple of 32 of them.
func onThreads(threads, n int, f func(lo, n int)) {
	var wg sync.WaitGroup
	part := (n/threads + 31) &^ 31
	for lo := 0; lo < n; lo += part {
		wg.Go(func() { f(lo, min(part, n-lo)) })
	}
	wg.Wait()
}

// addLoop is c = a + b; the lengths are multiples of 128 bytes.
func addLoop(threads int, a, b, c []byte) {
	onThreads(threads, len(a)/4, func(lo, n int) {
		C.loop_add((*C.float)(unsafe.Pointer(&c[4*lo])), (*C.float)(unsafe.Pointer(&a[4*lo])), (*C.float)(unsafe.Pointer(&b[4*lo])), C.size_t(n))
	})
}

// readLoop reads all of a.
func readLoop(threads int, a []byte) {
	onThreads(threads, len(a)/4, func(lo, n int) { C.loop_read((*C.float)(unsafe.Pointer(&a[4*lo])), C.size_t(n)) })
}
