// scan.h: the results of scanning preprocessed MSL.

#ifndef CONCORD_SIMMETAL_SCAN_H
#define CONCORD_SIMMETAL_SCAN_H

#include <cstdint>
#include <string>
#include <vector>

namespace simmetal {

struct Parameter {
  std::string name, pointee;    // the type without space, * and &, if it has an index
  std::string type;             // as written, without the name
  std::vector<std::string> members; // of the target, if that is a plain struct
  std::string attribute;        // "buffer", "threadgroup", "thread_position_in_grid" ...
  uint32_t index = 0;
  bool reference = false, is_constant = false, read_only = false;
  bool indexed() const { return attribute == "buffer" || attribute == "threadgroup"; }
};

struct Function {
  std::string name;
  std::vector<Parameter> params;
  uint32_t max_threads = 0; // of [[max_total_threads_per_threadgroup(n)]]; 0: none
};

struct Scan {
  std::string text; // for clang: without unknown attributes, group memory static
  std::vector<Function> kernels;
  std::string errors; // constructs that Metal does not have but clang would accept
};
Scan scan(const std::string &preprocessed);

} // namespace simmetal

#endif
