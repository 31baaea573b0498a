// hiprtc.cpp: AMD's run-time compiler with its public interface, as a part of libamdhip64, and the
// functions of comgr that list architectures.

#include "compile.h"
#include "fault.h"
#include "prelude.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

using namespace sim;

typedef int hiprtcResult;
enum {
  HIPRTC_SUCCESS = 0,
  HIPRTC_ERROR_OUT_OF_MEMORY = 1,
  HIPRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  HIPRTC_ERROR_INVALID_INPUT = 3,
  HIPRTC_ERROR_INVALID_PROGRAM = 4,
  HIPRTC_ERROR_INVALID_OPTION = 5,
  HIPRTC_ERROR_COMPILATION = 6,
  HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
  HIPRTC_ERROR_INTERNAL_ERROR = 11,
};

struct _hiprtcProgram {
  Source source;
  bool compiled = false;
  Compiled result;
};
typedef _hiprtcProgram *hiprtcProgram;

namespace {

const char *const archs[] = {"gfx803", "gfx900",  "gfx906",  "gfx908",
                             "gfx90a", "gfx1010", "gfx1030", "gfx1035"};

struct Live {
  std::mutex mu;
  std::set<hiprtcProgram> all;
};
Live &live() {
  static Live *l = new Live;
  return *l;
}

bool known(hiprtcProgram p) {
  std::lock_guard<std::mutex> lock(live().mu);
  return live().all.count(p) > 0;
}

// known_arch: a target is an architecture, and for some of them settings: gfx90a:sramecc+:xnack-.
bool known_arch(const std::string &target) {
  size_t colon = target.find(':');
  std::string base = target.substr(0, colon);
  bool found = false, settings = base.compare(0, 5, "gfx90") == 0 && base != "gfx900";
  for (const char *a : archs)
    found = found || base == a;
  while (found && colon != std::string::npos) {
    size_t next = target.find(':', colon + 1);
    std::string word =
        target.substr(colon + 1, next == std::string::npos ? next : next - colon - 1);
    found = settings &&
            (word == "sramecc+" || word == "sramecc-" || word == "xnack+" || word == "xnack-");
    colon = next;
  }
  return found;
}

// take reads one option. Options of clang that have no effect here are accepted.
bool take(const std::string &o, hiprtcProgram p) {
  size_t eq = o.find('=');
  std::string name = o.substr(0, eq), value = eq == std::string::npos ? "" : o.substr(eq + 1);
  if (name == "--offload-arch" || name == "--gpu-architecture") {
    if (!known_arch(value)) {
      fprintf(stderr, "hipRTC does not know %s, and ends the process\n", value.c_str());
      abort(); // as the real hipRTC does
    }
    p->source.target = value;
    return true;
  }
  if (name == "-std" || name == "--std") {
    p->source.cxx20 = value == "c++20";
    return value.compare(0, 3, "c++") == 0;
  }
  if (o.size() < 2 || o[0] != '-')
    return false;
  if (o[1] == 'D' || o[1] == 'U' || o[1] == 'I') {
    p->source.options.push_back(o);
    return o.size() > 2;
  }
  return strchr("OfmWwg", o[1]) != nullptr || o == "-v";
}

Dialect dialect(const Source &s) {
  std::string base = s.target.substr(0, s.target.find(':'));
  bool wide = base.compare(0, 5, "gfx10") != 0;
  return {{"__HIPCC_RTC__=1", "__HIPCC__=1", "__HIP__=1", "__HIP_PLATFORM_AMD__=1",
           "__HIP_PLATFORM_HCC__=1", "__HIP_DEVICE_COMPILE__=1", "__" + base + "__=1",
           "HIP_VERSION_MAJOR=5", "HIP_VERSION_MINOR=2", "__LP64__=1", "__CONCORD_SIM__=1",
           "HIP_DYNAMIC_SHARED(type,name)=extern __shared__ type name[];",
           "assert(x)=((x)?(void)0:__assertfail(#x,__FILE__,__LINE__,__func__,1))"},
          {wide ? "#define __SIM_WARP 64" : "#define __SIM_WARP 32", prelude::run, prelude::vector,
           prelude::math, prelude::device, prelude::hip}};
}

hiprtcResult text_out(const std::string &s, char *out) {
  if (out == nullptr)
    return HIPRTC_ERROR_INVALID_INPUT;
  memcpy(out, s.c_str(), s.size() + 1);
  return HIPRTC_SUCCESS;
}

} // namespace

namespace sim {
long programs(const std::string &what) {
  std::lock_guard<std::mutex> lock(live().mu);
  return what == "programs" ? static_cast<long>(live().all.size()) : -1;
}
} // namespace sim

SIM_EXPORT const char *hiprtcGetErrorString(hiprtcResult r) {
  static const char *const names[] = {"HIPRTC_SUCCESS",
                                      "HIPRTC_ERROR_OUT_OF_MEMORY",
                                      "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "HIPRTC_ERROR_INVALID_INPUT",
                                      "HIPRTC_ERROR_INVALID_PROGRAM",
                                      "HIPRTC_ERROR_INVALID_OPTION",
                                      "HIPRTC_ERROR_COMPILATION",
                                      "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                      "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                      "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                      "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                      "HIPRTC_ERROR_INTERNAL_ERROR"};
  return r >= 0 && r <= HIPRTC_ERROR_INTERNAL_ERROR ? names[r] : "HIPRTC_ERROR unknown";
}

SIM_EXPORT hiprtcResult hiprtcVersion(int *major, int *minor) {
  if (major == nullptr || minor == nullptr)
    return HIPRTC_ERROR_INVALID_INPUT;
  *major = 5;
  *minor = 2;
  return HIPRTC_SUCCESS;
}

SIM_EXPORT hiprtcResult hiprtcCreateProgram(hiprtcProgram *out, const char *text, const char *name,
                                            int count, const char *const *headers,
                                            const char *const *names) {
  if (out == nullptr || text == nullptr || count < 0 ||
      (count > 0 && (headers == nullptr || names == nullptr)))
    return HIPRTC_ERROR_INVALID_INPUT;
  if (int code = call(K_OTHER); code != 0 && code != code_lost) // it needs no device
    return code == 999 ? static_cast<int>(HIPRTC_ERROR_OUT_OF_MEMORY) : code;
  auto *p = new _hiprtcProgram;
  p->source.text = text;
  p->source.name = name != nullptr && *name != 0 ? name : "default_program";
  for (int i = 0; i < count; i++)
    p->source.headers.emplace_back(names[i], headers[i]);
  std::lock_guard<std::mutex> lock(live().mu);
  live().all.insert(p);
  *out = p;
  return HIPRTC_SUCCESS;
}

SIM_EXPORT hiprtcResult hiprtcDestroyProgram(hiprtcProgram *p) {
  if (p == nullptr || !known(*p))
    return HIPRTC_ERROR_INVALID_PROGRAM;
  {
    std::lock_guard<std::mutex> lock(live().mu);
    live().all.erase(*p);
  }
  delete *p;
  *p = nullptr;
  return HIPRTC_SUCCESS;
}

SIM_EXPORT hiprtcResult hiprtcAddNameExpression(hiprtcProgram p, const char *expression) {
  if (!known(p))
    return HIPRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr)
    return HIPRTC_ERROR_INVALID_INPUT;
  if (p->compiled)
    return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  p->source.expressions.push_back(expression);
  return HIPRTC_SUCCESS;
}

SIM_EXPORT hiprtcResult hiprtcCompileProgram(hiprtcProgram p, int count,
                                             const char *const *options) {
  if (!known(p))
    return HIPRTC_ERROR_INVALID_PROGRAM;
  if (count < 0 || (count > 0 && options == nullptr))
    return HIPRTC_ERROR_INVALID_INPUT;
  p->compiled = true;
  p->source.options.clear();
  p->source.target.clear();
  for (int i = 0; i < count; i++)
    if (options[i] == nullptr || !take(options[i], p)) {
      p->result.log = std::string("error: unknown argument: '") +
                      (options[i] != nullptr ? options[i] : "") + "'\n";
      return HIPRTC_ERROR_INVALID_OPTION;
    }
  if (p->source.target.empty()) {
    p->result.log = "error: --offload-arch is missing\n";
    return HIPRTC_ERROR_COMPILATION;
  }
  if (int code = call(K_COMPILE)) {
    p->result.log = p->source.name +
                    "(1): error: refused on demand\n\n1 error detected in the compilation of \"" +
                    p->source.name + "\".\n";
    return code;
  }
  p->result = compile(p->source, dialect(p->source));
  return p->result.ok ? HIPRTC_SUCCESS : HIPRTC_ERROR_COMPILATION;
}

SIM_EXPORT hiprtcResult hiprtcGetLoweredName(hiprtcProgram p, const char *expression,
                                             const char **out) {
  if (!known(p))
    return HIPRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr || out == nullptr)
    return HIPRTC_ERROR_INVALID_INPUT;
  if (!p->result.ok)
    return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  for (size_t i = 0; i < p->source.expressions.size(); i++)
    if (p->source.expressions[i] == expression) {
      *out = p->result.lowered[i].c_str();
      return HIPRTC_SUCCESS;
    }
  return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

static hiprtcResult ready(hiprtcProgram p, const void *out) {
  if (!known(p))
    return HIPRTC_ERROR_INVALID_PROGRAM;
  if (out == nullptr)
    return HIPRTC_ERROR_INVALID_INPUT;
  return p->result.ok ? HIPRTC_SUCCESS : HIPRTC_ERROR_INVALID_PROGRAM;
}

SIM_EXPORT hiprtcResult hiprtcGetCodeSize(hiprtcProgram p, size_t *n) {
  hiprtcResult r = ready(p, n);
  if (r == HIPRTC_SUCCESS)
    *n = p->result.binary.size();
  return r;
}

SIM_EXPORT hiprtcResult hiprtcGetCode(hiprtcProgram p, char *out) {
  hiprtcResult r = ready(p, out);
  if (r == HIPRTC_SUCCESS)
    memcpy(out, p->result.binary.data(), p->result.binary.size());
  return r;
}

SIM_EXPORT hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram p, size_t *n) {
  if (!known(p))
    return HIPRTC_ERROR_INVALID_PROGRAM;
  if (n == nullptr)
    return HIPRTC_ERROR_INVALID_INPUT;
  *n = p->result.log.size() + 1;
  return HIPRTC_SUCCESS;
}

SIM_EXPORT hiprtcResult hiprtcGetProgramLog(hiprtcProgram p, char *out) {
  return known(p) ? text_out(p->result.log, out) : static_cast<int>(HIPRTC_ERROR_INVALID_PROGRAM);
}

// -- comgr --

struct comgrAction {
  uint64_t handle;
};

SIM_EXPORT int amd_comgr_get_isa_count(size_t *count) {
  *count = sizeof archs / sizeof *archs;
  return 0;
}

SIM_EXPORT int amd_comgr_get_isa_name(size_t i, const char **name) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const char *a : archs)
      all.push_back(std::string("amdgcn-amd-amdhsa--") + a);
    return all;
  }();
  if (i >= names.size())
    return 2;
  *name = names[i].c_str();
  return 0;
}

SIM_EXPORT int amd_comgr_create_action_info(comgrAction *action) {
  action->handle = 1;
  return 0;
}

SIM_EXPORT int amd_comgr_destroy_action_info(comgrAction) { return 0; }

SIM_EXPORT int amd_comgr_action_info_set_isa_name(comgrAction, const char *name) {
  const char prefix[] = "amdgcn-amd-amdhsa--";
  size_t n = sizeof prefix - 1;
  return strncmp(name, prefix, n) == 0 && known_arch(name + n) ? 0 : 2;
}
