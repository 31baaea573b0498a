// compile.cpp: MSL becomes a library of the host: clang preprocesses it against the headers of msl/,
// the scanner finds the kernels, clang compiles the result with a thunk for each of them. Every
// compilation has a private directory, a reduced environment and no shell.

#include "compile.h"
#include "../lib/process.h"
#include "run.h"
#include "scan.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <sstream>

// The headers, as they are in this directory: the assembler gets -I of it.
#define HEADER(symbol, file)                                                                       \
  __asm__(".section .rodata\n" #symbol ":\n.incbin \"msl/" file "\"\n.byte 0\n.previous\n");       \
  extern "C" const char symbol[];
HEADER(simmetal_h_stdlib, "metal_stdlib")
HEADER(simmetal_h_keywords, "__sim_keywords")
HEADER(simmetal_h_types, "metal_types")
HEADER(simmetal_h_math, "metal_math")
HEADER(simmetal_h_common, "metal_common")
HEADER(simmetal_h_integer, "metal_integer")
HEADER(simmetal_h_relational, "metal_relational")
HEADER(simmetal_h_atomic, "metal_atomic")
HEADER(simmetal_h_compute, "metal_compute")
HEADER(simmetal_h_simdgroup, "metal_simdgroup")

namespace simmetal {
using sim::Directory;
using sim::find_program;
using sim::get;
using sim::put;
using sim::run;
namespace {

const std::pair<const char *, const char *> headers[] = {
    {"metal_stdlib", simmetal_h_stdlib},         {"__sim_keywords", simmetal_h_keywords},
    {"metal_types", simmetal_h_types},           {"metal_math", simmetal_h_math},
    {"metal_common", simmetal_h_common},         {"metal_integer", simmetal_h_integer},
    {"metal_relational", simmetal_h_relational}, {"metal_atomic", simmetal_h_atomic},
    {"metal_compute", simmetal_h_compute},       {"metal_simdgroup", simmetal_h_simdgroup},
};

// The description of each kernel in a program; the program's text has the same structs (see table).
struct Row {
  const char *name;
  Thunk thunk;
  // For each indexed parameter: sizeof and alignof of its target, then offsetof of the target's
  // members.
  const uint32_t *layout;
};

// values of Ids, by Metal's name.
const std::map<std::string, std::string> id_values = {
    {"thread_position_in_grid", "position"},
    {"thread_position_in_threadgroup", "item"},
    {"threadgroup_position_in_grid", "group"},
    {"threads_per_threadgroup", "group_size"},
    {"dispatch_threads_per_threadgroup", "group_size"},
    {"threadgroups_per_grid", "groups"},
    {"threads_per_grid", "grid"},
    {"thread_index_in_threadgroup", "=index"},
    {"thread_index_in_simdgroup", "=lane"},
    {"simdgroup_index_in_threadgroup", "=simd"},
    {"simdgroups_per_threadgroup", "=simds"},
    {"threads_per_simdgroup", "32"},
    {"thread_execution_width", "32"},
};

// value returns the argument that a thunk passes for a parameter; at is the number of indexed ones
// before it.
std::string value(const Parameter &p, size_t at, std::string *errors) {
  if (p.indexed()) {
    std::string arg = "args[" + std::to_string(at) + "]";
    if (!p.reference)
      return "(" + p.type + ")" + arg;
    std::string pointer = p.type;
    pointer.replace(pointer.find('&'), 1, "*");
    return "*(" + pointer + ")" + arg;
  }
  auto id = id_values.find(p.attribute);
  if (id == id_values.end()) {
    *errors += "program_source:1:1: error: '" + p.attribute + "' is no attribute of a kernel's parameter\n";
    return "0";
  }
  if (id->second[0] == '=')
    return p.type + "(ids->" + id->second.substr(1) + ")";
  if (id->second == "32")
    return p.type + "(32)";
  return "__sim_id<" + p.type + ">::of(ids->" + id->second + ")";
}

// table is the text after a program: a thunk for each kernel, and their list.
std::string table(const Scan &scan, std::string *errors) {
  std::string out = R"(
#pragma clang diagnostic ignored "-Wold-style-cast"
# 1 "kernels"
struct __sim_ids { uint item[3], group[3], group_size[3], groups[3], position[3], grid[3], index, lane, simd, simds; };
template <class T> struct __sim_id { static T of(const uint *v) { return T(v[0]); } };
template <class T> struct __sim_id<metal::vec<T, 2>> { static metal::vec<T, 2> of(const uint *v) { return {T(v[0]), T(v[1])}; } };
template <class T> struct __sim_id<metal::vec<T, 3>> { static metal::vec<T, 3> of(const uint *v) { return {T(v[0]), T(v[1]), T(v[2])}; } };
template <class T> struct __sim_size { enum { bytes = sizeof(T), align = alignof(T) }; };
template <> struct __sim_size<void> { enum { bytes = 0, align = 1 }; };
extern "C" {
__attribute__((visibility("default"))) const struct __sim_hook_table *__sim_hooks;
__attribute__((noinline, visibility("hidden"))) ulong __sim_wait(int op, ulong value, uint at) { return __sim_hooks->wait(op, value, at); }
}
struct __sim_row { const char *name; void (*thunk)(void *const *, const __sim_ids *); const uint *layout; };
)";
  std::string rows;
  for (size_t k = 0; k < scan.kernels.size(); k++) {
    const Function &f = scan.kernels[k];
    std::string call, layout;
    size_t at = 0;
    for (auto &p : f.params) {
      call += (call.empty() ? "" : ", ") + value(p, at, errors);
      if (p.indexed()) {
        layout += "__sim_size<" + p.pointee + ">::bytes, __sim_size<" + p.pointee + ">::align, ";
        for (auto &m : p.members)
          layout += "__builtin_offsetof(" + p.pointee + ", " + m + "), ";
        at++;
      }
    }
    std::string n = std::to_string(k);
    out += "extern \"C\" void __sim_thunk_" + n + "(void *const *args, const __sim_ids *ids) { (void)args, (void)ids; " + f.name + "(" + call + "); }\n" +
           "static const uint __sim_layout_" + n + "[] = {" + layout + "0};\n";
    rows += "{\"" + f.name + "\", __sim_thunk_" + n + ", __sim_layout_" + n + "},\n";
  }
  return out + "extern \"C\" __attribute__((visibility(\"default\"))) const __sim_row __sim_table[] = {" + rows + "{nullptr, nullptr, nullptr}};\n";
}

// Facts are known only after compiling.
struct Facts {
  bool waits;
  uint32_t bytes;
};

struct Assembly {
  std::map<std::string, std::set<std::string>> refers;
  std::map<std::string, uint32_t> group_memory; // thread-local variables
};

std::vector<std::string> words(const std::string &line) {
  std::vector<std::string> out;
  std::string w;
  for (char c : line + " ") {
    if (isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$') {
      w += c;
    } else if (!w.empty()) {
      out.push_back(w);
      w.clear();
    }
  }
  return out;
}

Assembly read(const std::string &text) {
  Assembly a;
  std::istringstream in(text);
  std::string function, section;
  for (std::string line; std::getline(in, line);) {
    auto w = words(line);
    if (w.empty())
      continue;
    if (w[0] == ".section" || w[0] == ".text" || w[0] == ".data" || w[0] == ".bss")
      section = w.size() > 1 ? w[1] : w[0];
    bool tls = section.compare(0, 5, ".tbss") == 0 || section.compare(0, 6, ".tdata") == 0;
    if (w[0] == ".type" && w.size() > 2)
      function = w[2] == "function" ? w[1] : "";
    else if (w[0] == ".size" && w.size() > 2 && tls)
      a.group_memory[w[1]] = static_cast<uint32_t>(strtoul(w[2].c_str(), nullptr, 10));
    else if (!function.empty() && w[0][0] != '.')
      a.refers[function].insert(w.begin(), w.end());
  }
  return a;
}

void reach(const Assembly &a, const std::string &f, std::set<std::string> *seen) {
  if (!seen->insert(f).second)
    return;
  auto it = a.refers.find(f);
  if (it != a.refers.end())
    for (auto &next : it->second)
      reach(a, next, seen);
}

Facts facts(const Assembly &a, const std::string &function) {
  std::set<std::string> seen;
  reach(a, function, &seen);
  Facts f = {seen.count("__sim_wait") > 0, 0};
  for (auto &s : seen) {
    auto v = a.group_memory.find(s);
    if (v != a.group_memory.end())
      f.bytes += (v->second + 15) / 16 * 16;
  }
  return f;
}

// Library owns everything that its public part points to.
struct Library : simmetal_library {
  std::vector<Function> functions;
  std::vector<std::vector<simmetal_param>> params;
  std::list<std::vector<simmetal_member>> members;
  std::vector<simmetal_kernel> list;
};

// describe reads the layout of a parameter and advances past it.
simmetal_param describe(const Parameter &p, Library *l, const uint32_t **layout) {
  uint32_t bytes = *(*layout)++, align = *(*layout)++;
  l->members.emplace_back();
  auto &members = l->members.back();
  for (auto &m : p.members)
    members.push_back({m.c_str(), *(*layout)++});
  return {p.name.c_str(), p.pointee.c_str(), p.attribute == "buffer" ? SIMMETAL_BUFFER : SIMMETAL_THREADGROUP, p.index,
          p.reference, p.is_constant, p.read_only, bytes, align, members.data(), static_cast<uint32_t>(members.size())};
}

Library *load(const std::string &path, const Scan &scan, const Assembly &assembly, std::string *log) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *log = std::string("the compiled program cannot be loaded: ") + dlerror() + "\n";
    return nullptr;
  }
  *static_cast<const Hooks **>(dlsym(handle, "__sim_hooks")) = &hooks;
  auto *rows = static_cast<const Row *>(dlsym(handle, "__sim_table"));
  auto *l = new Library();
  l->handle = handle;
  l->functions = scan.kernels;
  for (size_t k = 0; k < l->functions.size(); k++) {
    const Function &f = l->functions[k];
    l->params.emplace_back();
    const uint32_t *layout = rows[k].layout;
    for (auto &p : f.params)
      if (p.indexed())
        l->params.back().push_back(describe(p, l, &layout));
    Facts about = facts(assembly, "__sim_thunk_" + std::to_string(k));
    l->list.push_back({f.name.c_str(), nullptr, static_cast<uint32_t>(l->params.back().size()), about.bytes,
                       f.max_threads != 0 ? f.max_threads : 1024, about.waits, reinterpret_cast<const void *>(rows[k].thunk)});
  }
  for (size_t k = 0; k < l->list.size(); k++)
    l->list[k].params = l->params[k].data();
  l->kernels = l->list.data();
  l->kernel_count = static_cast<uint32_t>(l->list.size());
  return l;
}

const char *clang() {
  static const std::string found = find_program({"clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15", "clang++"});
  return found.c_str();
}

bool preprocess(const Directory &dir, const char *msl, const char *const *macros, int version) {
  for (auto &h : headers)
    if (!put(dir.path + "/" + h.first, h.second))
      return false;
  std::vector<std::string> args = {clang(), "-E", "-x", "c++", "-std=c++14", "-nostdinc", "-nostdinc++", "-I.",
                                   "-Wno-everything", "-fno-color-diagnostics", "-fno-caret-diagnostics", "-D__SIM_PREPROCESS",
                                   "-D__METAL_VERSION__=" + std::to_string(version == 0 ? 300 : version)};
  for (; macros != nullptr && *macros != nullptr; macros++)
    args.push_back(std::string("-D") + *macros);
  args.insert(args.end(), {"-o", "program.ii", "program.metal"});
  return put(dir.path + "/program.metal", std::string("#line 1 \"program_source\"\n") + msl + "\n") && run(dir.path, args);
}

bool build(const Directory &dir, const std::string &text, int fast) {
  // The pragma is Metal's, and overrides the option.
  bool safe = fast == 0 || text.find("#pragma METAL fp math_mode(safe)") != std::string::npos;
  return put(dir.path + "/all.cc", "#include <__sim_keywords>\n" + text) &&
         run(dir.path, {clang(), "-S", "-x", "c++", "-std=c++14", "-fPIC", "-O1", "-nostdinc", "-nostdinc++", "-I.",
                        "-Wno-everything", "-Werror=return-type", "-fno-color-diagnostics", "-fno-caret-diagnostics",
                        safe ? "-fno-fast-math" : "-ffast-math", "-ffp-contract=off", "-fno-math-errno",
                        "-fno-strict-aliasing", "-fwrapv", "-fsigned-char", "-fno-exceptions", "-fno-rtti",
                        "-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables", "-fvisibility=hidden",
                        "-fno-stack-protector", "-fno-jump-tables", "-ferror-limit=20", "-o", "all.s", "all.cc"}) &&
         run(dir.path, {clang(), "-shared", "-nostdlib++", "-Wl,-Bsymbolic", "-Wl,-z,now", "-o", "program.so", "all.s", "-lm"});
}

void give(char *log, size_t size, const std::string &text) {
  if (log != nullptr && size > 0)
    snprintf(log, size, "%s", text.c_str());
}

} // namespace
} // namespace simmetal

using namespace simmetal;

extern "C" {

simmetal_library *simmetal_compile_with(const char *msl, const char *const *macros, int version, int fast_math, char *log,
                                        size_t size) {
  give(log, size, "");
  Directory dir;
  if (dir.path.empty() || *clang() == 0) {
    give(log, size, dir.path.empty() ? "no temporary directory\n" : "no clang++ here\n");
    return nullptr;
  }
  std::string messages;
  if (preprocess(dir, msl, macros, version)) {
    Scan program = scan(get(dir.path + "/program.ii"));
    messages = program.errors;
    std::string text = program.text + table(program, &messages);
    if (messages.empty() && build(dir, text, fast_math)) {
      Library *l = load(dir.path + "/program.so", program, read(get(dir.path + "/all.s")), &messages);
      give(log, size, messages);
      return l;
    }
  }
  give(log, size, messages.empty() ? get(dir.path + "/errors") : messages);
  return nullptr;
}

simmetal_library *simmetal_compile(const char *msl, char *log, size_t size) {
  return simmetal_compile_with(msl, nullptr, 300, 0, log, size);
}

void simmetal_free(simmetal_library *library) {
  if (library == nullptr)
    return;
  dlclose(library->handle);
  delete static_cast<Library *>(library);
}

const simmetal_kernel *simmetal_find(const simmetal_library *library, const char *name) {
  for (uint32_t i = 0; i < library->kernel_count; i++)
    if (strcmp(library->kernels[i].name, name) == 0)
      return &library->kernels[i];
  return nullptr;
}
}
