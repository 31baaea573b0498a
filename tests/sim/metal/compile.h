// compile.h: the compiler and the processor behind the simulated Metal. MSL is compiled for the host
// by clang with the metal_stdlib of this directory, where every address space is a type of its own,
// and its kernels run on the executor of csrc/host. The framework (the .m files) calls only this.

#ifndef CONCORD_SIMMETAL_COMPILE_H
#define CONCORD_SIMMETAL_COMPILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// simmetal_kind is the kind of a kernel's parameter.
typedef enum simmetal_kind {
  SIMMETAL_BUFFER = 0,      // [[buffer(index)]]: device or constant, pointer or reference
  SIMMETAL_THREADGROUP = 1, // [[threadgroup(index)]]: memory of each threadgroup
} simmetal_kind;

// simmetal_member is a member of a struct with its offset.
typedef struct simmetal_member {
  const char *name;
  uint32_t offset;
} simmetal_member;

// simmetal_param is one parameter with an index; parameters that Metal fills in, such as
// [[thread_position_in_grid]], are not listed.
typedef struct simmetal_param {
  const char *name;
  const char *type;   // type of the pointer's or reference's target without address space: "float"
  simmetal_kind kind;
  uint32_t index;     // of buffer(index) or threadgroup(index)
  uint32_t reference; // 1: declared with &, 0: with *
  uint32_t constant;  // 1: constant T, 0: device T (or threadgroup)
  uint32_t read_only; // 1: constant, or device const
  uint32_t bytes;     // sizeof(T); 0 for void
  uint32_t align;     // alignof(T); 1 for void
  const simmetal_member *members; // members of T, if T is a plain struct
  uint32_t member_count;          // 0: T is another type
} simmetal_param;

typedef struct simmetal_kernel {
  const char *name;
  const simmetal_param *params;
  uint32_t param_count;
  uint32_t static_bytes; // threadgroup memory that its body declares
  uint32_t max_threads;  // [[max_total_threads_per_threadgroup(n)]], or 1024
  uint32_t barriers;     // 1: it has barriers
  const void *entry;     // the function in the compiled program
} simmetal_kernel;

typedef struct simmetal_library {
  const simmetal_kernel *kernels; // in the order of the text
  uint32_t kernel_count;
  void *handle;
} simmetal_library;

// SIMMETAL_WIDTH is the thread execution width: threads of a SIMD group.
#define SIMMETAL_WIDTH 32
// SIMMETAL_BUFFERS is the number of entries in the buffer argument table.
#define SIMMETAL_BUFFERS 31
#define SIMMETAL_MEMORY 32768 // bytes of a threadgroup, declared and passed together

// simmetal_compile compiles MSL. It returns the library, which simmetal_free releases, or NULL with
// the compiler's messages in log ("program_source:LINE:COLUMN: error: ..." as in Metal), cut to
// size and always terminated; on success log holds the warnings, usually "". macros are "NAME" or
// "NAME=VALUE", ended by NULL; NULL means none. version is the language, 200 for 2.0 to 310 for 3.1
// (__METAL_VERSION__); 0 means 300. fast_math is clang's -ffast-math, unless the program has a
// pragma against it. Any number of calls may run at once.
simmetal_library *simmetal_compile_with(const char *msl, const char *const *macros, int version,
                                        int fast_math, char *log, size_t size);
// simmetal_compile is the same without macros, for Metal 3.0 and without fast-math.
simmetal_library *simmetal_compile(const char *msl, char *log, size_t size);
// simmetal_free unloads a library; none of its kernels may be running. NULL is allowed.
void simmetal_free(simmetal_library *library);
// simmetal_find returns a kernel of the library, or NULL.
const simmetal_kernel *simmetal_find(const simmetal_library *library, const char *name);

// simmetal_args is what a command encoder has bound. An index that the kernel does not have is
// ignored.
typedef struct simmetal_args {
  void *buffer[SIMMETAL_BUFFERS];          // address of each bound buffer, with its offset; or NULL
  size_t threadgroup[SIMMETAL_BUFFERS];    // setThreadgroupMemoryLength:atIndex:, bytes
} simmetal_args;

// The outcome of a run; a GPU reports the last two as errors of the command buffer.
enum {
  SIMMETAL_OK = 0,
  SIMMETAL_INVALID = 1, // a shape or an argument that Metal's validation layer refuses
  SIMMETAL_FAULT = 2,   // an invalid address, a stack overflow, an illegal instruction
  SIMMETAL_HANG = 3,    // a barrier that not all threads reach
  SIMMETAL_NOMEM = 4,
};

// simmetal_run runs a kernel over groups x group threads and returns when all are done: one of
// SIMMETAL_*, with the reason in log (may be NULL). It may be called from any thread, also by
// several at once. Only whole threadgroups run: dispatchThreads with a remainder is not simulated.
int simmetal_run(const simmetal_kernel *kernel, const uint32_t groups[3], const uint32_t group[3],
                 const simmetal_args *args, char *log, size_t size);

#ifdef __cplusplus
}
#endif
#endif
