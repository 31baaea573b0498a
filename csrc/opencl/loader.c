// loader.c defines the cl* functions that go-gl/cl refers to, so that no program is linked with
// libOpenCL. See opencl.h. The list is that of the binding's package v1.2/cl; a function missing
// here is an undefined symbol when a program is linked, never later.

#include "opencl.h"

#ifdef __APPLE__ // the binding links the OpenCL framework

int concord_cl_library(const char *name, const char **text) {
  (void)name;
  *text = "OpenCL.framework: linked";
  return 1;
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static char tried[1024];
static char chosen[512]; // the name to open instead of the usual ones

static int open_as(const char *name) {
  // RTLD_LOCAL hides its symbols from other libraries. With lazy binding, a missing symbol of a
  // broken driver would end the process later.
  library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  const char *outcome = library != NULL ? "found" : dlerror();
  // The text of dlerror mostly begins with the name; do not repeat it.
  size_t n = strlen(name);
  if (outcome != NULL && strncmp(outcome, name, n) == 0 && outcome[n] == ':')
    outcome += n + 2;
  size_t used = strlen(tried);
  snprintf(tried + used, sizeof tried - used, "%s%s: %s", used > 0 ? "\n" : "", name,
           outcome != NULL ? outcome : "not found");
  return library != NULL;
}

static void open_library(void) {
  if (chosen[0] != '\0') {
    open_as(chosen);
    return;
  }
  if (!open_as("libOpenCL.so.1"))
    open_as("libOpenCL.so");
}

int concord_cl_library(const char *name, const char **text) {
  static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&first);
  if (tried[0] == '\0') // no library was opened yet: open_library will read the name
    snprintf(chosen, sizeof chosen, "%s", name);
  pthread_once(&once, open_library);
  pthread_mutex_unlock(&first);
  *text = tried;
  return library != NULL;
}

// find returns a function of the loader, or NULL. Each symbol is looked up separately, at its first
// call, so that with an old loader only the functions that it lacks are missing.
static void *find(const char *name, _Atomic(void *) *slot) {
  void *f = atomic_load_explicit(slot, memory_order_acquire);
  if (f != NULL)
    return f;
  pthread_once(&once, open_library);
  if (library == NULL)
    return NULL;
  f = dlsym(library, name);
  atomic_store_explicit(slot, f, memory_order_release);
  return f;
}

static cl_int absent(void) {
  return library != NULL ? CL_INVALID_OPERATION : CL_PLATFORM_NOT_FOUND_KHR;
}

// FUNC begins a definition. In its body, call is the loader's function of the same type, or NULL.
#define FUNC(ret, name, params)                                                                    \
  ret CL_API_CALL name params {                                                                    \
    static _Atomic(void *) slot;                                                                   \
    __typeof__(name) *call = (__typeof__(name) *)find(#name, &slot);

// CALL defines a function that returns an error code, MAKE one that returns an object and stores
// the error code at err, FIND one that returns an address.
#define CALL(name, params, args)                                                                   \
  FUNC(cl_int, name, params)                                                                       \
  return call != NULL ? call args : absent();                                                      \
  }
#define MAKE(ret, name, err, params, args)                                                         \
  FUNC(ret, name, params)                                                                          \
  if (call != NULL)                                                                                \
    return call args;                                                                              \
  if (err != NULL)                                                                                 \
    *err = absent();                                                                               \
  return NULL;                                                                                     \
  }
#define FIND(name, params, args)                                                                   \
  FUNC(void *, name, params)                                                                       \
  return call != NULL ? call args : NULL;                                                          \
  }
// ONE and INFO are the two signatures that most functions have.
#define ONE(name, type) CALL(name, (type a), (a))
#define INFO(name, type, what)                                                                     \
  CALL(name, (type a, what b, size_t c, void *d, size_t *e), (a, b, c, d, e))

// The functions, by signature and then by name. clang-format off keeps each on one or two lines.
// clang-format off
ONE(clEnqueueBarrier, cl_command_queue)
ONE(clFinish, cl_command_queue)
ONE(clFlush, cl_command_queue)
ONE(clReleaseCommandQueue, cl_command_queue)
ONE(clReleaseContext, cl_context)
ONE(clReleaseDevice, cl_device_id)
ONE(clReleaseEvent, cl_event)
ONE(clReleaseKernel, cl_kernel)
ONE(clReleaseMemObject, cl_mem)
ONE(clReleaseProgram, cl_program)
ONE(clReleaseSampler, cl_sampler)
ONE(clRetainCommandQueue, cl_command_queue)
ONE(clRetainContext, cl_context)
ONE(clRetainDevice, cl_device_id)
ONE(clRetainEvent, cl_event)
ONE(clRetainKernel, cl_kernel)
ONE(clRetainMemObject, cl_mem)
ONE(clRetainProgram, cl_program)
ONE(clRetainSampler, cl_sampler)
ONE(clUnloadPlatformCompiler, cl_platform_id)

INFO(clGetCommandQueueInfo, cl_command_queue, cl_command_queue_info)
INFO(clGetContextInfo, cl_context, cl_context_info)
INFO(clGetDeviceInfo, cl_device_id, cl_device_info)
INFO(clGetEventInfo, cl_event, cl_event_info)
INFO(clGetEventProfilingInfo, cl_event, cl_profiling_info)
INFO(clGetImageInfo, cl_mem, cl_image_info)
INFO(clGetKernelInfo, cl_kernel, cl_kernel_info)
INFO(clGetMemObjectInfo, cl_mem, cl_mem_info)
INFO(clGetPlatformInfo, cl_platform_id, cl_platform_info)
INFO(clGetProgramInfo, cl_program, cl_program_info)
INFO(clGetSamplerInfo, cl_sampler, cl_sampler_info)

CALL(clBuildProgram, (cl_program a, cl_uint b, const cl_device_id *c, const char *d,
     void (CL_CALLBACK *e)(cl_program, void *), void *f), (a, b, c, d, e, f))
CALL(clCompileProgram, (cl_program a, cl_uint b, const cl_device_id *c, const char *d, cl_uint e,
     const cl_program *f, const char **g, void (CL_CALLBACK *h)(cl_program, void *), void *i),
     (a, b, c, d, e, f, g, h, i))
CALL(clCreateKernelsInProgram, (cl_program a, cl_uint b, cl_kernel *c, cl_uint *d), (a, b, c, d))
CALL(clCreateSubDevices, (cl_device_id a, const cl_device_partition_property *b, cl_uint c,
     cl_device_id *d, cl_uint *e), (a, b, c, d, e))
CALL(clEnqueueBarrierWithWaitList, (cl_command_queue a, cl_uint b, const cl_event *c, cl_event *d),
     (a, b, c, d))
CALL(clEnqueueCopyBuffer, (cl_command_queue a, cl_mem b, cl_mem c, size_t d, size_t e, size_t f,
     cl_uint g, const cl_event *h, cl_event *i), (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueCopyBufferRect, (cl_command_queue a, cl_mem b, cl_mem c, const size_t *d,
     const size_t *e, const size_t *f, size_t g, size_t h, size_t i, size_t j, cl_uint k,
     const cl_event *l, cl_event *m), (a, b, c, d, e, f, g, h, i, j, k, l, m))
CALL(clEnqueueCopyBufferToImage, (cl_command_queue a, cl_mem b, cl_mem c, size_t d, const size_t *e,
     const size_t *f, cl_uint g, const cl_event *h, cl_event *i), (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueCopyImage, (cl_command_queue a, cl_mem b, cl_mem c, const size_t *d, const size_t *e,
     const size_t *f, cl_uint g, const cl_event *h, cl_event *i), (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueCopyImageToBuffer, (cl_command_queue a, cl_mem b, cl_mem c, const size_t *d,
     const size_t *e, size_t f, cl_uint g, const cl_event *h, cl_event *i),
     (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueFillBuffer, (cl_command_queue a, cl_mem b, const void *c, size_t d, size_t e,
     size_t f, cl_uint g, const cl_event *h, cl_event *i), (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueFillImage, (cl_command_queue a, cl_mem b, const void *c, const size_t *d,
     const size_t *e, cl_uint f, const cl_event *g, cl_event *h), (a, b, c, d, e, f, g, h))
CALL(clEnqueueMarker, (cl_command_queue a, cl_event *b), (a, b))
CALL(clEnqueueMarkerWithWaitList, (cl_command_queue a, cl_uint b, const cl_event *c, cl_event *d),
     (a, b, c, d))
CALL(clEnqueueMigrateMemObjects, (cl_command_queue a, cl_uint b, const cl_mem *c,
     cl_mem_migration_flags d, cl_uint e, const cl_event *f, cl_event *g), (a, b, c, d, e, f, g))
CALL(clEnqueueNDRangeKernel, (cl_command_queue a, cl_kernel b, cl_uint c, const size_t *d,
     const size_t *e, const size_t *f, cl_uint g, const cl_event *h, cl_event *i),
     (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueReadBuffer, (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, void *f,
     cl_uint g, const cl_event *h, cl_event *i), (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueReadBufferRect, (cl_command_queue a, cl_mem b, cl_bool c, const size_t *d,
     const size_t *e, const size_t *f, size_t g, size_t h, size_t i, size_t j, void *k, cl_uint l,
     const cl_event *m, cl_event *n), (a, b, c, d, e, f, g, h, i, j, k, l, m, n))
CALL(clEnqueueReadImage, (cl_command_queue a, cl_mem b, cl_bool c, const size_t *d, const size_t *e,
     size_t f, size_t g, void *h, cl_uint i, const cl_event *j, cl_event *k),
     (a, b, c, d, e, f, g, h, i, j, k))
CALL(clEnqueueTask, (cl_command_queue a, cl_kernel b, cl_uint c, const cl_event *d, cl_event *e),
     (a, b, c, d, e))
CALL(clEnqueueUnmapMemObject, (cl_command_queue a, cl_mem b, void *c, cl_uint d, const cl_event *e,
     cl_event *f), (a, b, c, d, e, f))
CALL(clEnqueueWaitForEvents, (cl_command_queue a, cl_uint b, const cl_event *c), (a, b, c))
CALL(clEnqueueWriteBuffer, (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e,
     const void *f, cl_uint g, const cl_event *h, cl_event *i), (a, b, c, d, e, f, g, h, i))
CALL(clEnqueueWriteBufferRect, (cl_command_queue a, cl_mem b, cl_bool c, const size_t *d,
     const size_t *e, const size_t *f, size_t g, size_t h, size_t i, size_t j, const void *k,
     cl_uint l, const cl_event *m, cl_event *n), (a, b, c, d, e, f, g, h, i, j, k, l, m, n))
CALL(clEnqueueWriteImage, (cl_command_queue a, cl_mem b, cl_bool c, const size_t *d,
     const size_t *e, size_t f, size_t g, const void *h, cl_uint i, const cl_event *j, cl_event *k),
     (a, b, c, d, e, f, g, h, i, j, k))
CALL(clGetDeviceIDs, (cl_platform_id a, cl_device_type b, cl_uint c, cl_device_id *d, cl_uint *e),
     (a, b, c, d, e))
CALL(clGetKernelArgInfo, (cl_kernel a, cl_uint b, cl_kernel_arg_info c, size_t d, void *e,
     size_t *f), (a, b, c, d, e, f))
CALL(clGetKernelWorkGroupInfo, (cl_kernel a, cl_device_id b, cl_kernel_work_group_info c, size_t d,
     void *e, size_t *f), (a, b, c, d, e, f))
CALL(clGetPlatformIDs, (cl_uint a, cl_platform_id *b, cl_uint *c), (a, b, c))
CALL(clGetProgramBuildInfo, (cl_program a, cl_device_id b, cl_program_build_info c, size_t d,
     void *e, size_t *f), (a, b, c, d, e, f))
CALL(clGetSupportedImageFormats, (cl_context a, cl_mem_flags b, cl_mem_object_type c, cl_uint d,
     cl_image_format *e, cl_uint *f), (a, b, c, d, e, f))
CALL(clSetEventCallback, (cl_event a, cl_int b, void (CL_CALLBACK *c)(cl_event, cl_int, void *),
     void *d), (a, b, c, d))
CALL(clSetKernelArg, (cl_kernel a, cl_uint b, size_t c, const void *d), (a, b, c, d))
CALL(clSetMemObjectDestructorCallback, (cl_mem a, void (CL_CALLBACK *b)(cl_mem, void *), void *c),
     (a, b, c))
CALL(clSetUserEventStatus, (cl_event a, cl_int b), (a, b))
CALL(clUnloadCompiler, (void), ())
CALL(clWaitForEvents, (cl_uint a, const cl_event *b), (a, b))

MAKE(cl_mem, clCreateBuffer, e, (cl_context a, cl_mem_flags b, size_t c, void *d, cl_int *e),
     (a, b, c, d, e))
MAKE(cl_command_queue, clCreateCommandQueue, d, (cl_context a, cl_device_id b,
     cl_command_queue_properties c, cl_int *d), (a, b, c, d))
MAKE(cl_context, clCreateContext, f, (const cl_context_properties *a, cl_uint b,
     const cl_device_id *c, void (CL_CALLBACK *d)(const char *, const void *, size_t, void *),
     void *e, cl_int *f), (a, b, c, d, e, f))
MAKE(cl_context, clCreateContextFromType, e, (const cl_context_properties *a, cl_device_type b,
     void (CL_CALLBACK *c)(const char *, const void *, size_t, void *), void *d, cl_int *e),
     (a, b, c, d, e))
MAKE(cl_mem, clCreateImage, f, (cl_context a, cl_mem_flags b, const cl_image_format *c,
     const cl_image_desc *d, void *e, cl_int *f), (a, b, c, d, e, f))
MAKE(cl_mem, clCreateImage2D, h, (cl_context a, cl_mem_flags b, const cl_image_format *c, size_t d,
     size_t e, size_t f, void *g, cl_int *h), (a, b, c, d, e, f, g, h))
MAKE(cl_mem, clCreateImage3D, j, (cl_context a, cl_mem_flags b, const cl_image_format *c, size_t d,
     size_t e, size_t f, size_t g, size_t h, void *i, cl_int *j), (a, b, c, d, e, f, g, h, i, j))
MAKE(cl_kernel, clCreateKernel, c, (cl_program a, const char *b, cl_int *c), (a, b, c))
MAKE(cl_program, clCreateProgramWithBinary, g, (cl_context a, cl_uint b, const cl_device_id *c,
     const size_t *d, const unsigned char **e, cl_int *f, cl_int *g), (a, b, c, d, e, f, g))
MAKE(cl_program, clCreateProgramWithBuiltInKernels, e, (cl_context a, cl_uint b,
     const cl_device_id *c, const char *d, cl_int *e), (a, b, c, d, e))
MAKE(cl_program, clCreateProgramWithSource, e, (cl_context a, cl_uint b, const char **c,
     const size_t *d, cl_int *e), (a, b, c, d, e))
MAKE(cl_sampler, clCreateSampler, e, (cl_context a, cl_bool b, cl_addressing_mode c,
     cl_filter_mode d, cl_int *e), (a, b, c, d, e))
MAKE(cl_mem, clCreateSubBuffer, e, (cl_mem a, cl_mem_flags b, cl_buffer_create_type c,
     const void *d, cl_int *e), (a, b, c, d, e))
MAKE(cl_event, clCreateUserEvent, b, (cl_context a, cl_int *b), (a, b))
MAKE(void *, clEnqueueMapBuffer, j, (cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d,
     size_t e, size_t f, cl_uint g, const cl_event *h, cl_event *i, cl_int *j),
     (a, b, c, d, e, f, g, h, i, j))
MAKE(void *, clEnqueueMapImage, l, (cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d,
     const size_t *e, const size_t *f, size_t *g, size_t *h, cl_uint i, const cl_event *j,
     cl_event *k, cl_int *l), (a, b, c, d, e, f, g, h, i, j, k, l))
MAKE(cl_program, clLinkProgram, i, (cl_context a, cl_uint b, const cl_device_id *c, const char *d,
     cl_uint e, const cl_program *f, void (CL_CALLBACK *g)(cl_program, void *), void *h, cl_int *i),
     (a, b, c, d, e, f, g, h, i))

FIND(clGetExtensionFunctionAddress, (const char *a), (a))
FIND(clGetExtensionFunctionAddressForPlatform, (cl_platform_id a, const char *b), (a, b))
// clang-format on

#endif
