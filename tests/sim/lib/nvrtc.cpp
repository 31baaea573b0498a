// nvrtc.cpp: NVIDIA's run-time compiler with the public interface of versions 11.8 and 13.0.

#include "compile.h"
#include "fault.h"
#include "flavour.h"
#include "prelude.h"

#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <set>

using namespace sim;

typedef int nvrtcResult;
enum {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
  NVRTC_ERROR_INTERNAL_ERROR = 11,
};

struct _nvrtcProgram {
  Source source;
  bool compiled = false;
  bool has_cubin = false;
  Compiled result;
};
typedef _nvrtcProgram *nvrtcProgram;

namespace {

struct Live {
  std::mutex mu;
  std::set<nvrtcProgram> all;
};
Live &live() {
  static Live *l = new Live;
  return *l;
}

bool known(nvrtcProgram p) {
  std::lock_guard<std::mutex> lock(live().mu);
  return live().all.count(p) > 0;
}

// Options that have no effect here, without their values.
const char *const ignored[] = {
    "--fmad",
    "-fmad",
    "--ftz",
    "-ftz",
    "--prec-div",
    "-prec-div",
    "--prec-sqrt",
    "-prec-sqrt",
    "--use_fast_math",
    "-use_fast_math",
    "--maxrregcount",
    "-maxrregcount",
    "--device-debug",
    "-G",
    "--generate-line-info",
    "-lineinfo",
    "--relocatable-device-code",
    "-rdc",
    "--device-c",
    "-dc",
    "--device-w",
    "-dw",
    "--device-as-default-execution-space",
    "-default-device",
    "--extra-device-vectorization",
    "-extra-device-vectorization",
    "--disable-warnings",
    "-w",
    "--restrict",
    "-restrict",
    "--device-int128",
    "-device-int128",
    "--builtin-move-forward",
    "-builtin-move-forward",
    "--builtin-initializer-list",
    "-builtin-initializer-list",
    "--modify-stack-limit",
    "-modify-stack-limit",
    "--diag-suppress",
    "-diag-suppress",
    "--diag-error",
    "-diag-error",
    "--diag-warn",
    "-diag-warn",
    "--version-ident",
    "-version-ident",
    "--display-error-number",
    "-err-no",
    "--no-display-error-number",
    "-no-err-no",
    "--ptxas-options",
    "-Xptxas",
    "--optimization-info",
    "-opt-info",
    "--dopt",
    "-dopt",
    "--no-source-include",
    "-no-source-include",
    "--dlink-time-opt",
    "-dlto",
};

bool take_standard(const std::string &v, Source *s) {
  s->cxx20 = v == "c++20";
  return v == "c++03" || v == "c++11" || v == "c++14" || v == "c++17" || v == "c++20";
}

bool take_target(const std::string &v, nvrtcProgram p) {
  for (const int *a = flavour.archs; *a != 0; a++)
    if (v == "sm_" + std::to_string(*a) || v == "compute_" + std::to_string(*a)) {
      p->source.target = "sm_" + std::to_string(*a);
      p->has_cubin = v[0] == 's';
      return true;
    }
  return false;
}

// take reads one option. next is the next argument, or empty; used is set if next was the option's
// value.
bool take(const std::string &o, const std::string &next, bool *used, nvrtcProgram p) {
  size_t eq = o.find('=');
  std::string name = o.substr(0, eq), value = eq == std::string::npos ? "" : o.substr(eq + 1);
  auto separate = [&] {
    if (eq == std::string::npos) {
      value = next;
      *used = true;
    }
    return value;
  };
  Source *s = &p->source;
  if (name == "--gpu-architecture" || name == "-arch")
    return take_target(separate(), p);
  if (name == "--std" || name == "-std")
    return take_standard(separate(), s);
  if (name == "--pre-include" || name == "-include") {
    s->before.push_back(separate());
    return true;
  }
  for (char c : {'D', 'U', 'I'}) {
    const char *const names[] = {"--define-macro", "--undefine-macro", "--include-path"};
    std::string longer = names[c == 'D' ? 0 : c == 'U' ? 1 : 2], flag = std::string("-") + c;
    if (name == longer || o == flag) {
      s->options.push_back(flag + (o == flag ? (*used = true, next) : separate()));
      return true;
    }
    if (o.compare(0, 2, flag) == 0) {
      s->options.push_back(o);
      return true;
    }
  }
  for (const char *i : ignored)
    if (name == i)
      return true;
  return false;
}

Dialect dialect(const Source &s) {
  std::string arch = s.target.substr(3), major = std::to_string(flavour.major),
              minor = std::to_string(flavour.minor);
  return {{"__CUDACC__=1", "__CUDACC_RTC__=1", "__NVCC__=1", "__CUDA_ARCH__=" + arch + "0",
           "__CUDACC_VER_MAJOR__=" + major, "__CUDACC_VER_MINOR__=" + minor,
           "__CUDACC_VER_BUILD__=89", "__CUDA_API_VER_MAJOR__=" + major,
           "__CUDA_API_VER_MINOR__=" + minor, "__LP64__=1", "__CONCORD_SIM__=1",
           "assert(x)=((x)?(void)0:__assertfail(#x,__FILE__,__LINE__,__func__,1))"},
          {prelude::run, prelude::vector, prelude::math, prelude::device, prelude::cuda}};
}

// builtins opens the library that NVRTC's own headers are in. As the real one it gives only the
// bare name, so that the loader finds it in its directories, or among the libraries that are open.
bool builtins(std::string *log) {
  if (flavour.builtins == nullptr)
    return true;
  static void *library = nullptr;
  std::lock_guard<std::mutex> lock(live().mu);
  if (library == nullptr)
    library = dlopen(flavour.builtins, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || dlsym(library, "concord_sim_builtins") == nullptr) {
    std::string name = flavour.builtins;
    *log = "nvrtc: error: failed to open " + name + ".\n  Make sure that " + name +
           " is installed correctly.\n";
    return false;
  }
  return true;
}

nvrtcResult text_out(const std::string &s, char *out) {
  if (out == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  memcpy(out, s.c_str(), s.size() + 1);
  return NVRTC_SUCCESS;
}

} // namespace

namespace sim {
long programs(const std::string &what) {
  std::lock_guard<std::mutex> lock(live().mu);
  return what == "programs" ? static_cast<long>(live().all.size()) : -1;
}
long gauge(const std::string &what) { return programs(what); }
} // namespace sim

SIM_EXPORT const char *nvrtcGetErrorString(nvrtcResult r) {
  static const char *const names[] = {"NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION",
                                      "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                      "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                      "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                      "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                      "NVRTC_ERROR_INTERNAL_ERROR"};
  return r >= 0 && r <= NVRTC_ERROR_INTERNAL_ERROR ? names[r] : "NVRTC_ERROR unknown";
}

SIM_EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) {
  if (major == nullptr || minor == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  *major = flavour.major;
  *minor = flavour.minor;
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *n) {
  if (n == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  for (*n = 0; flavour.archs[*n] != 0;)
    ++*n;
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcGetSupportedArchs(int *out) {
  if (out == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  for (int i = 0; flavour.archs[i] != 0; i++)
    out[i] = flavour.archs[i];
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name,
                                          int count, const char *const *headers,
                                          const char *const *names) {
  if (out == nullptr || text == nullptr || count < 0 ||
      (count > 0 && (headers == nullptr || names == nullptr)))
    return NVRTC_ERROR_INVALID_INPUT;
  if (int code = call(K_OTHER); code != 0 && code != code_lost) // it needs no device
    return code == 999 ? static_cast<int>(NVRTC_ERROR_OUT_OF_MEMORY) : code;
  auto *p = new _nvrtcProgram;
  p->source.text = text;
  p->source.name = name != nullptr && *name != 0 ? name : "default_program";
  p->source.target = "sm_" + std::to_string(flavour.major < 13 ? 52 : 75);
  for (int i = 0; i < count; i++)
    p->source.headers.emplace_back(names[i], headers[i]);
  std::lock_guard<std::mutex> lock(live().mu);
  live().all.insert(p);
  *out = p;
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p) {
  if (p == nullptr || !known(*p))
    return NVRTC_ERROR_INVALID_PROGRAM;
  {
    std::lock_guard<std::mutex> lock(live().mu);
    live().all.erase(*p);
  }
  delete *p;
  *p = nullptr;
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram p, const char *expression) {
  if (!known(p))
    return NVRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  if (p->compiled)
    return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  p->source.expressions.push_back(expression);
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count, const char *const *options) {
  if (!known(p))
    return NVRTC_ERROR_INVALID_PROGRAM;
  if (count < 0 || (count > 0 && options == nullptr))
    return NVRTC_ERROR_INVALID_INPUT;
  p->compiled = true;
  p->has_cubin = false;
  p->source.options.clear();
  for (int i = 0; i < count; i++) {
    bool used = false;
    if (options[i] == nullptr)
      return NVRTC_ERROR_INVALID_INPUT;
    if (!take(options[i], i + 1 < count ? options[i + 1] : "", &used, p)) {
      p->result.log =
          std::string("nvrtc: error: unrecognized option or value in ") + options[i] + "\n";
      return NVRTC_ERROR_INVALID_OPTION;
    }
    i += used;
  }
  if (int code = call(K_COMPILE)) {
    p->result.log = p->source.name +
                    "(1): error: refused on demand\n\n1 error detected in the compilation of \"" +
                    p->source.name + "\".\n";
    return code;
  }
  if (!builtins(&p->result.log))
    return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  p->result = compile(p->source, dialect(p->source));
  return p->result.ok ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

SIM_EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram p, const char *expression,
                                           const char **out) {
  if (!known(p))
    return NVRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr || out == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  if (!p->result.ok)
    return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  for (size_t i = 0; i < p->source.expressions.size(); i++)
    if (p->source.expressions[i] == expression) {
      *out = p->result.lowered[i].c_str();
      return NVRTC_SUCCESS;
    }
  return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

static nvrtcResult ready(nvrtcProgram p, const void *out) {
  if (!known(p))
    return NVRTC_ERROR_INVALID_PROGRAM;
  if (out == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  return p->result.ok ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

SIM_EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n) {
  nvrtcResult r = ready(p, n);
  if (r == NVRTC_SUCCESS)
    *n = p->result.text.size() + 1;
  return r;
}

SIM_EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *out) {
  nvrtcResult r = ready(p, out);
  return r == NVRTC_SUCCESS ? text_out(p->result.text, out) : r;
}

// A program for a virtual architecture (compute_80) has no binary form: its size is 0.
SIM_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n) {
  nvrtcResult r = ready(p, n);
  if (r == NVRTC_SUCCESS)
    *n = p->has_cubin ? p->result.binary.size() : 0;
  return r;
}

SIM_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *out) {
  nvrtcResult r = ready(p, out);
  if (r == NVRTC_SUCCESS && p->has_cubin)
    memcpy(out, p->result.binary.data(), p->result.binary.size());
  return r;
}

SIM_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n) {
  if (!known(p))
    return NVRTC_ERROR_INVALID_PROGRAM;
  if (n == nullptr)
    return NVRTC_ERROR_INVALID_INPUT;
  *n = p->result.log.size() + 1;
  return NVRTC_SUCCESS;
}

SIM_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *out) {
  return known(p) ? text_out(p->result.log, out) : static_cast<int>(NVRTC_ERROR_INVALID_PROGRAM);
}
