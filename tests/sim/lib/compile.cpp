// compile.cpp: runs g++ twice, first to preprocess the program without the host's headers, then to
// compile the text that the scanner has rewritten. Each compilation has a private directory.

#include "compile.h"
#include "process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <sys/stat.h>

namespace sim {
namespace {

// put_header writes a header under inc/, with the directories of its name.
bool put_header(const std::string &dir, const std::string &name, const std::string &text) {
  if (name.empty() || name[0] == '/' || ("/" + name + "/").find("/../") != std::string::npos)
    return false;
  for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
    mkdir((dir + "/inc/" + name.substr(0, at)).c_str(), 0700);
  return put(dir + "/inc/" + name, text);
}

// diagnostic turns g++'s "name:line:column: error: text" into "name(line): error: text".
std::string diagnostic(std::string line, int *errors) {
  if (line.compare(0, 4, "inc/") == 0)
    line = line.substr(4);
  size_t kind = line.find(": error: "), fatal = line.find(": fatal error: ");
  if (kind == std::string::npos && fatal == std::string::npos)
    return "";
  ++*errors;
  bool is_fatal = kind == std::string::npos;
  std::string where = line.substr(0, is_fatal ? fatal : kind);
  std::string what = line.substr(is_fatal ? fatal + 15 : kind + 9);
  size_t column = where.rfind(':'),
         number = column == std::string::npos ? column : where.rfind(':', column - 1);
  if (number != std::string::npos)
    where = where.substr(0, number) + "(" + where.substr(number + 1, column - number - 1) + ")";
  return where + (is_fatal ? ": catastrophic error: " : ": error: ") + what + "\n\n";
}

std::string diagnostics(const std::string &raw, const std::string &name) {
  std::istringstream in(raw);
  std::string out;
  int errors = 0;
  for (std::string line; std::getline(in, line);)
    out += diagnostic(line, &errors);
  if (errors == 0)
    return raw;
  return out + std::to_string(errors) + (errors == 1 ? " error" : " errors") +
         " detected in the compilation of \"" + name + "\".\n";
}

std::string compiler() {
  const char *path = getenv("CONCORD_SIM_COMPILER");
  return path != nullptr && *path != 0 ? path : "g++";
}

bool preprocess(const Source &s, const Dialect &d, const std::string &dir) {
  std::vector<std::string> args = {compiler(),
                                   "-E",
                                   "-undef",
                                   "-nostdinc",
                                   "-x",
                                   "c++",
                                   s.cxx20 ? "-std=c++20" : "-std=c++17",
                                   "-Iinc",
                                   "-fno-diagnostics-show-caret",
                                   "-fdiagnostics-color=never",
                                   "-w"};
  for (auto &m : d.macros)
    args.push_back("-D" + m);
  args.insert(args.end(), s.options.begin(), s.options.end());
  args.insert(args.end(), {"-o", "program.ii", "program.cu"});
  std::string first;
  for (auto &h : s.before)
    first += "#include \"" + h + "\"\n";
  mkdir((dir + "/inc").c_str(), 0700);
  for (auto &h : s.headers)
    if (!put_header(dir, h.first, h.second))
      return false;
  return put(dir + "/program.cu", first + "#line 1 \"" + s.name + "\"\n" + s.text + "\n") &&
         run(dir, args);
}

// table returns the text after the program that lists the kernels.
std::string table(const Scanned &program, const std::vector<Kernel> &kernels) {
  std::string out =
      "\n# 1 \"name expressions\"\nstatic void __sim_dynamic(void *block) {\n(void)block;\n";
  for (auto &d : program.dynamic)
    out += d + " = (decltype(" + d + "))block;\n";
  out += "}\nstatic const __sim_entry __sim_entries[] = {\n";
  for (auto &k : kernels)
    out += "__sim_kernel<(" + k.expression + ")>::entry(),\n";
  if (kernels.empty())
    out += "{0, nullptr, nullptr, nullptr, nullptr}\n";
  return out +
         "};\nextern \"C\" __attribute__((visibility(\"default\"))) const __sim_table_type "
         "__sim_table = {1, " +
         std::to_string(kernels.size()) + ", __sim_entries, &__sim_trap};\n";
}

bool build(const Source &s, const Dialect &d, const std::string &dir, const Scanned &program,
           const std::vector<Kernel> &kernels) {
  std::string text;
  for (auto &p : d.prelude)
    text += p + "\n";
  text += program.text + table(program, kernels);
  return put(dir + "/all.cc", text) &&
         run(dir, {compiler(),
                   "-S",
                   "-fPIC",
                   "-O1",
                   s.cxx20 ? "-std=c++20" : "-std=c++17",
                   "-nostdinc",
                   "-w",
                   "-fno-diagnostics-show-caret",
                   "-fdiagnostics-color=never",
                   "-ffp-contract=off",
                   "-fno-math-errno",
                   "-fno-strict-aliasing",
                   "-fwrapv",
                   "-fsigned-char",
                   "-fno-delete-null-pointer-checks",
                   "-fno-exceptions",
                   "-fno-rtti",
                   "-fno-threadsafe-statics",
                   "-fno-asynchronous-unwind-tables",
                   "-fno-gnu-unique",
                   "-fno-semantic-interposition",
                   "-fvisibility=hidden",
                   "-fno-stack-protector",
                   "-fno-jump-tables",
                   "-o",
                   "all.s",
                   "all.cc"}) &&
         run(dir, {compiler(), "-shared", "-Wl,-Bsymbolic", "-Wl,-z,now", "-Wl,--as-needed", "-o",
                   "program.so", "all.s", "-lm"});
}

void pack(const Source &s, const std::vector<Kernel> &kernels, const std::string &dir,
          Compiled *out) {
  std::string elf = get(dir + "/program.so");
  for (auto &k : kernels)
    out->facts.push_back({k.expression, 1, 0, k.threads});
  out->ok = inspect(dir + "/program.so", get(dir + "/all.s"), &out->facts);
  if (!out->ok) {
    out->log = "the compiled program cannot be loaded\n";
    return;
  }
  for (size_t i = kernels.size() - s.expressions.size(); i < kernels.size(); i++)
    out->lowered.push_back(out->facts[i].name);
  out->binary = image_pack(s.target, out->facts, elf);
  out->text = image_text(s.target, out->facts, out->binary);
}

Compiled make(const Source &s, const Dialect &d) {
  Compiled out;
  Directory dir;
  if (dir.path.empty()) {
    out.log = std::string("no temporary directory: ") + strerror(errno) + "\n";
    return out;
  }
  if (!preprocess(s, d, dir.path)) {
    out.log = diagnostics(get(dir.path + "/errors"), s.name);
    return out;
  }
  Scanned program = scan(get(dir.path + "/program.ii"));
  std::vector<Kernel> kernels = program.kernels;
  for (auto &e : s.expressions)
    kernels.push_back({e, 0});
  if (build(s, d, dir.path, program, kernels))
    pack(s, kernels, dir.path, &out);
  else
    out.log = diagnostics(get(dir.path + "/errors"), s.name);
  return out;
}

} // namespace

Compiled compile(const Source &s, const Dialect &d) {
  std::string path = kept_path(s, d);
  Compiled out;
  if (kept(path, &out))
    return out;
  out = make(s, d);
  keep(path, out);
  return out;
}

} // namespace sim
