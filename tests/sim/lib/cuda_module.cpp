// cuda_module.cpp: libcuda's modules, functions, launches and occupancy.

#include "cuda.h"

#include <cstring>

using namespace sim;

SIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count,
                                       int *options, void **values) {
  CU(K_LOAD, CONTEXT);
  NEED(out && image && (count == 0 || (options && values)));
  std::string log;
  int code = module_load(ctx, image, &log, out);
  char *buffer = nullptr;
  size_t *room = nullptr; // bytes that fit on input, bytes written on output
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == 5)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == 6)
      room = reinterpret_cast<size_t *>(&values[i]);
  }
  if (buffer != nullptr && room != nullptr && *room > 0) {
    size_t n = log.size() < *room - 1 ? log.size() : *room - 1;
    memcpy(buffer, log.data(), n);
    buffer[n] = 0;
    *room = n;
  }
  return code;
}

SIM_EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  return cuModuleLoadDataEx(out, image, 0, nullptr, nullptr);
}

SIM_EXPORT CUresult cuModuleUnload(CUmodule m) {
  CU(K_OTHER, CONTEXT);
  return module_unload(ctx, m);
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
  CU(K_FIND, CONTEXT);
  NEED(out);
  return module_function(ctx, m, name, out);
}

SIM_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule m,
                                         const char *name) {
  CU(K_FIND, CONTEXT);
  void *p = nullptr;
  int code = module_global(ctx, m, name, &p, bytes);
  if (code == OK && out != nullptr)
    *out = address(p);
  return code;
}

static CUresult with_function(CUfunction f, Lock &lock) {
  return function_find(lock, f) == nullptr ? INVALID_HANDLE : OK;
}

SIM_EXPORT CUresult cuFuncGetAttribute(int *value, int n, CUfunction f) {
  CU(K_OTHER, CONTEXT);
  NEED(value && n >= 0 && n <= 15);
  Lock lock(world().mu);
  if (int code = with_function(f, lock))
    return code;
  const ImageFacts &facts = f->kernel->facts;
  int arch = 0;
  sscanf(f->image->target.c_str(), "sm_%d", &arch);
  switch (n) {
  case 0:
    *value = static_cast<int>(facts.threads != 0 ? facts.threads : limits::threads);
    break;
  case 1:
    *value = static_cast<int>(facts.shared);
    break;
  case 4:
    *value = 32;
    break;
  case 5:
  case 6:
    *value = arch;
    break;
  case 8:
    *value = static_cast<int>(f->max_dynamic);
    break;
  case 9:
    *value = -1;
    break;
  default:
    *value = 0;
  }
  return OK;
}

// More than 48 KiB of dynamic shared memory need an opt-in.
SIM_EXPORT CUresult cuFuncSetAttribute(CUfunction f, int n, int value) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  if (int code = with_function(f, lock))
    return code;
  if (n == 9) {
    NEED(value >= -1 && value <= 100);
    return OK;
  }
  NEED(n == 8 && value >= 0 &&
       static_cast<size_t>(value) + f->kernel->facts.shared <= limits::shared_optin);
  f->max_dynamic = static_cast<size_t>(value);
  return OK;
}

SIM_EXPORT CUresult cuFuncSetCacheConfig(CUfunction f, int) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  return with_function(f, lock);
}

SIM_EXPORT CUresult cuFuncGetModule(CUmodule *out, CUfunction f) {
  CU(K_OTHER, CONTEXT);
  NEED(out);
  Lock lock(world().mu);
  if (int code = with_function(f, lock))
    return code;
  *out = f->module;
  return OK;
}

static CUresult start(CUfunction f, const unsigned *dims, unsigned shared, CUstream s,
                      void **params, void **extra, bool cooperative) {
  CU(K_LAUNCH, CONTEXT);
  NEED(params == nullptr || extra == nullptr);
  return launch(ctx, f, dims, dims + 3, shared, params, extra, s, cooperative);
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream s,
                                   void **params, void **extra) {
  const unsigned dims[] = {gx, gy, gz, bx, by, bz};
  return start(f, dims, shared, s, params, extra, false);
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                              unsigned bx, unsigned by, unsigned bz,
                                              unsigned shared, CUstream s, void **params) {
  const unsigned dims[] = {gx, gy, gz, bx, by, bz};
  return start(f, dims, shared, s, params, nullptr, true);
}

SIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction f,
                                                                         int block, size_t dynamic,
                                                                         unsigned flags) {
  CU(K_OTHER, CONTEXT);
  NEED(out && block > 0 && flags <= 1);
  Lock lock(world().mu);
  if (int code = with_function(f, lock))
    return code;
  *out = static_cast<unsigned>(block) > limits::threads ? 0 : occupancy(f, block, dynamic);
  return OK;
}

SIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction f, int block,
                                                                size_t dynamic) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, block, dynamic, 0);
}

SIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                              size_t (*needs)(int), size_t dynamic,
                                                              int limit, unsigned flags) {
  CU(K_OTHER, CONTEXT);
  NEED(grid && block && flags <= 1);
  Lock lock(world().mu);
  if (int code = with_function(f, lock))
    return code;
  return occupancy_best(
      f, [=](int n) { return needs != nullptr ? needs(n) : dynamic; }, limit, 32, grid, block);
}

SIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                                     size_t (*needs)(int), size_t dynamic,
                                                     int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, needs, dynamic, limit, 0);
}

SIM_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction f, int blocks,
                                                            int block) {
  CU(K_OTHER, CONTEXT);
  NEED(out && blocks > 0 && block > 0);
  Lock lock(world().mu);
  if (int code = with_function(f, lock))
    return code;
  size_t each = limits::shared_sm / static_cast<size_t>(blocks),
         used = f->kernel->facts.shared + limits::reserved;
  *out = each > used ? each - used : 0;
  return OK;
}
