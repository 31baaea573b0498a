// compile.h: the compiler of the simulated NVRTC and hipRTC: g++, with a prelude that implements
// the vendors' dialect of C++.

#ifndef CONCORD_SIM_COMPILE_H
#define CONCORD_SIM_COMPILE_H

#include "image.h"

#include <string>
#include <utility>
#include <vector>

namespace sim {

// Dialect describes the differences between the vendors.
struct Dialect {
  std::vector<std::string> macros;  // "NAME=VALUE"
  std::vector<std::string> prelude; // texts, in order
};

struct Source {
  std::string name, text;
  std::vector<std::pair<std::string, std::string>> headers; // name, text
  std::vector<std::string> options;                         // for the preprocessor: -D -U -I
  std::vector<std::string> before;                          // headers to include first
  std::vector<std::string> expressions;                     // of kernels, usually templates
  std::string target;                                       // "sm_80"
  bool cxx20 = false;
};

struct Compiled {
  bool ok = false;
  std::string log;                  // in the vendors' form: name(line): error: ...
  std::vector<ImageFacts> facts;    // of each kernel
  std::vector<std::string> lowered; // of each expression
  std::string binary, text;
};
Compiled compile(const Source &source, const Dialect &dialect);

// kept.cpp. kept_path returns the path of the file for a compilation, "" if it is not to be kept.
// kept reads the file, and returns false if there is none or it is damaged. keep writes it as a
// whole, in any number of processes at once.
std::string kept_path(const Source &source, const Dialect &dialect);
bool kept(const std::string &path, Compiled *out);
void keep(const std::string &path, const Compiled &compiled);

// scan.cpp
struct Kernel {
  std::string expression; // as C++ names it from outside all namespaces
  unsigned threads;       // of __launch_bounds__; 0: none
};
struct Scanned {
  std::string text; // with dynamic shared memory written as C++
  std::vector<Kernel> kernels;
  std::vector<std::string>
      dynamic; // pointers that stand for extern __shared__ arrays of the program
};
Scanned scan(const std::string &preprocessed);

// inspect.cpp: facts about the compiled kernels, from g++'s assembly text and the finished library.
bool inspect(const std::string &library, const std::string &assembly,
             std::vector<ImageFacts> *facts);

} // namespace sim

#endif
