//go:build cgo && linux

package main

// OpenBLAS, opened at run time into this process.

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef void sgemm_func(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm_func(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                        const double *b, int ldb, double beta, double *c, int ldc);

static sgemm_func *sgemm;
static dgemm_func *dgemm;
static char *(*corename)(void);
static void (*set_threads)(int);

// peer_open returns why it failed, or NULL.
static const char *peer_open(const char *name, int threads) {
  void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    return dlerror();
  sgemm = (sgemm_func *)dlsym(lib, "cblas_sgemm");
  dgemm = (dgemm_func *)dlsym(lib, "cblas_dgemm");
  corename = (char *(*)(void))dlsym(lib, "openblas_get_corename");
  set_threads = (void (*)(int))dlsym(lib, "openblas_set_num_threads");
  if (!sgemm || !dgemm || !corename || !set_threads)
    return "it lacks a function";
  set_threads(threads);
  return NULL;
}

static const char *peer_core(void) { return corename(); }

static void peer_gemm(int f64, int m, int n, int k, void *a, int lda, void *b, int ldb, void *c, int ldc) {
  if (f64)
    dgemm(101, 111, 111, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
  else
    sgemm(101, 111, 111, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}

#cgo noescape peer_gemm
#cgo nocallback peer_gemm
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// openBLAS loads the library and returns the name of the kernels that it chose.
func openBLAS(library string, threads int) (core string, err error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if text := C.peer_open(name, C.int(threads)); text != nil {
		return "", fmt.Errorf("%s: %s", library, C.GoString(text))
	}
	return C.GoString(C.peer_core()), nil
}

// blasGemm is C = A·B for row-major matrices without padding, double if f64.
func blasGemm(f64 bool, m, n, k int, a, b, c []byte) {
	wide := C.int(0)
	if f64 {
		wide = 1
	}
	C.peer_gemm(wide, C.int(m), C.int(n), C.int(k), unsafe.Pointer(&a[0]), C.int(k), unsafe.Pointer(&b[0]), C.int(n),
		unsafe.Pointer(&c[0]), C.int(n))
}
