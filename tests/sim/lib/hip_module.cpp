// hip_module.cpp: HIP's modules, functions and launches.

#include "hip.h"

using namespace sim;

SIM_EXPORT hipError_t hipModuleLoadData(hipModule_t *out, const void *image) {
  HIP(K_LOAD);
  NEED(out && image);
  std::string log;
  int code = module_load(ctx, image, &log, out);
  if (code != OK && verbose())
    fprintf(stderr, "concord-sim: %s\n", log.c_str());
  return hip_keep(code);
}

SIM_EXPORT hipError_t hipModuleLoadDataEx(hipModule_t *out, const void *image, unsigned, int *,
                                          void **) {
  return hipModuleLoadData(out, image);
}

SIM_EXPORT hipError_t hipModuleUnload(hipModule_t m) {
  HIP_END(module_unload(ctx, m));
}

SIM_EXPORT hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t m, const char *name) {
  HIP(K_FIND);
  NEED(out);
  return hip_keep(module_function(ctx, m, name, out));
}

SIM_EXPORT hipError_t hipModuleGetGlobal(void **out, size_t *bytes, hipModule_t m,
                                         const char *name) {
  HIP(K_FIND);
  return hip_keep(module_global(ctx, m, name, out, bytes));
}

SIM_EXPORT hipError_t hipFuncGetAttribute(int *value, int n, hipFunction_t f) {
  HIP(K_OTHER);
  NEED(value && n >= 0 && n <= 9);
  Lock lock(world().mu);
  if (function_find(lock, f) == nullptr)
    return hip_keep(INVALID_HANDLE);
  const ImageFacts &facts = f->kernel->facts;
  *value = n == 0   ? static_cast<int>(facts.threads != 0 ? facts.threads : limits::threads)
           : n == 1 ? static_cast<int>(facts.shared)
           : n == 4 ? 32
           : n == 8 ? static_cast<int>(f->max_dynamic)
                    : 0;
  return OK;
}

SIM_EXPORT hipError_t hipFuncSetAttribute(const void *f, int n, int value) {
  HIP(K_OTHER);
  Lock lock(world().mu);
  Function *real = function_find(lock, static_cast<Function *>(const_cast<void *>(f)));
  if (real == nullptr)
    return hip_keep(INVALID_HANDLE);
  NEED(n == 9 ||
       (value >= 0 && static_cast<size_t>(value) + real->kernel->facts.shared <= shared_plain));
  return OK;
}

SIM_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
                                            unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                            hipStream_t s, void **params, void **extra) {
  HIP(K_LAUNCH);
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  NEED(params == nullptr || extra == nullptr);
  return hip_keep(launch(ctx, f, grid, block, shared, params, extra, s, false));
}

SIM_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *out, hipFunction_t f,
                                                                         int block,
                                                                         size_t dynamic) {
  HIP(K_OTHER);
  NEED(out && block > 0);
  Lock lock(world().mu);
  if (function_find(lock, f) == nullptr)
    return hip_keep(INVALID_HANDLE);
  *out = static_cast<unsigned>(block) > limits::threads ? 0 : occupancy(f, block, dynamic);
  return OK;
}

SIM_EXPORT hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block,
                                                              hipFunction_t f, size_t dynamic,
                                                              int limit) {
  HIP(K_OTHER);
  NEED(grid && block);
  Lock lock(world().mu);
  if (function_find(lock, f) == nullptr)
    return hip_keep(INVALID_HANDLE);
  return hip_keep(occupancy_best(f, [=](int) { return dynamic; }, limit, 64, grid, block));
}
