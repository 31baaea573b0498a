// rocm.h declares what HIP has beside csrc/gpu/gpu.h: comgr, signatures of its own. The build needs
// no header of the vendor and links none of its libraries. Numbers and layouts are those of HIP 5
// to 7.

#ifndef CONCORD_ROCM_H
#define CONCORD_ROCM_H

#include "../gpu/load.h"

typedef const char *(*hip_error_text)(int code);
typedef int (*hip_set_device)(int device);
typedef int (*hip_enable_peer)(int peer, unsigned flags);
typedef int (*hip_copy_peer)(uint64_t dst, int to, uint64_t src, int from, size_t bytes,
                             void *stream);
typedef int (*hip_module_load)(void **module, const void *image);

enum { HIP_NO_DEVICE = 100 };

struct comgr_action { // passed by value
  uint64_t handle;
};

// comgr_api has functions of comgr, with which hipRTC compiles.
struct comgr_api {
  int (*count)(size_t *count);
  int (*name)(size_t index, const char **name);
  int (*create)(struct comgr_action *action);
  int (*destroy)(struct comgr_action action);
  int (*set_name)(struct comgr_action action, const char *name);
};

enum { // of rocblas_gemm_ex
  ROCBLAS_R_16F = 150,
  ROCBLAS_R_32F = 151,
  ROCBLAS_STANDARD = 0,
};

typedef int (*rocblas_gemm_ex)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                               const void *a, int a_type, int lda, const void *b, int b_type,
                               int ldb, const void *beta, const void *c, int c_type, int ldc,
                               void *d, int d_type, int ldd, int compute_type, int algorithm,
                               int32_t solution, uint32_t flags);
typedef int (*rocblas_get_version)(char *text, size_t bytes);

// others[0] is comgr.
struct rocm_lib {
  cs_lib base;
  int (*reset)(void);
  int (*properties)(void *properties, int device);
  struct comgr_api isa;
};

struct rocm_device {
  cs_device base;
  char arch[128]; // "gfx90a:sramecc+:xnack-"
};

#define OWN(member) offsetof(struct rocm_lib, member)
#define ISA(member) offsetof(struct rocm_lib, isa.member)

#endif
