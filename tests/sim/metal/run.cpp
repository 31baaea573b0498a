// run.cpp: launches of simulated Metal kernels on the executor of csrc/host.

#include "run.h"

#include "../../../csrc/host/host.h"

#include <cstdio>

namespace simmetal {
namespace {

int refuse(char *log, size_t size, const std::string &why) {
  if (log != nullptr && size > 0)
    snprintf(log, size, "%s", why.c_str());
  return SIMMETAL_INVALID;
}

int status(const concord_error &err) {
  switch (err.status) {
  case CONCORD_OK:
    return SIMMETAL_OK;
  case CONCORD_BARRIER:
    return SIMMETAL_HANG;
  case CONCORD_NOMEM:
    return SIMMETAL_NOMEM;
  case CONCORD_FAULT:
    return SIMMETAL_FAULT;
  default:
    return SIMMETAL_INVALID;
  }
}

// bind fills in the launch's arguments. It returns "", or the reason why they are invalid.
std::string bind(const simmetal_kernel *k, const simmetal_args *a, Launch *l, size_t *bytes) {
  *bytes = 0;
  for (uint32_t i = 0; i < k->param_count; i++) {
    const simmetal_param &p = k->params[i];
    l->value[i] = nullptr;
    l->local[i] = SIZE_MAX;
    if (p.index >= SIMMETAL_BUFFERS)
      return std::string(p.name) + ": index " + std::to_string(p.index) + " is too large";
    if (p.kind == SIMMETAL_BUFFER) {
      l->value[i] = a->buffer[p.index];
      if (l->value[i] == nullptr)
        return "missing buffer binding at index " + std::to_string(p.index) + " for " + p.name;
      if (reinterpret_cast<uintptr_t>(l->value[i]) % p.align != 0)
        return "the buffer at index " + std::to_string(p.index) + " is not aligned to " + std::to_string(p.align) + " bytes for " + p.name;
      continue;
    }
    size_t n = a->threadgroup[p.index];
    if (n == 0 || n % 16 != 0)
      return "threadgroup memory at index " + std::to_string(p.index) + " for " + p.name + " has " + std::to_string(n) + " bytes: a multiple of 16 is needed";
    l->local[i] = *bytes;
    *bytes += (n + 127) / 128 * 128;
  }
  return "";
}

} // namespace
} // namespace simmetal

using namespace simmetal;

extern "C" int simmetal_run(const simmetal_kernel *kernel, const uint32_t groups[3],
                            const uint32_t group[3], const simmetal_args *args, char *log,
                            size_t size) {
  if (log != nullptr && size > 0)
    *log = 0;
  uint64_t threads = uint64_t(group[0]) * group[1] * group[2];
  if (threads == 0 || uint64_t(groups[0]) * groups[1] * groups[2] == 0)
    return refuse(log, size, "a dimension of the grid is 0");
  if (threads > kernel->max_threads)
    return refuse(log, size, std::to_string(threads) + " threads per threadgroup: at most " + std::to_string(kernel->max_threads));
  Launch l;
  if (kernel->param_count > LIMIT)
    return refuse(log, size, "too many parameters");
  size_t bytes;
  std::string wrong = bind(kernel, args, &l, &bytes);
  if (wrong.empty() && bytes + kernel->static_bytes > SIMMETAL_MEMORY)
    wrong = std::to_string(bytes + kernel->static_bytes) + " bytes of threadgroup memory: at most " + std::to_string(SIMMETAL_MEMORY);
  if (!wrong.empty())
    return refuse(log, size, wrong);
  l.thunk = reinterpret_cast<Thunk>(reinterpret_cast<uintptr_t>(kernel->entry));
  l.count = kernel->param_count;
  Launch *only = &l;
  void *argument = &only;
  uint32_t width = sizeof only;
  concord_kernel k = {};
  k.name = kernel->name;
  k.flags = kernel->barriers != 0 ? uint32_t(CONCORD_KERNEL_FIBERS) : 0u;
  k.param_count = 1;
  k.param_bytes = &width;
  k.local_bytes = bytes;
  k.run = kernel->barriers != 0 ? run_thread : run_group;
  concord_launch launch = {};
  launch.kernel = &k;
  launch.dim = 3;
  launch.arg_count = 1;
  launch.args = &argument;
  for (int d = 0; d < 3; d++) {
    launch.local[d] = group[d];
    launch.global[d] = uint64_t(groups[d]) * group[d];
  }
  concord_error err = {};
  if (concord_host_launch(&launch, &err) == CONCORD_OK)
    return SIMMETAL_OK;
  if (log != nullptr && size > 0)
    snprintf(log, size, "%s: %s", kernel->name, err.message);
  return status(err);
}
