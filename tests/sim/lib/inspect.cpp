// inspect.cpp: reads the assembly of a compiled program for facts that are not available in C++:
// which kernels synchronize, and how much static shared memory each one uses.

#include "compile.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace sim {
namespace {

// Assembly holds, for each function of a program, the symbols that it refers to.
struct Assembly {
  std::map<std::string, std::set<std::string>> refers;
  std::set<std::string> indirect;                // functions with indirect calls
  std::map<std::string, unsigned> thread_locals; // bytes
};

bool name_char(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
}

std::vector<std::string> words(const std::string &line) {
  std::vector<std::string> out;
  std::string w;
  for (char c : line + " ") {
    if (name_char(c)) {
      w += c;
    } else if (!w.empty()) {
      out.push_back(w);
      w.clear();
    }
  }
  return out;
}

// An indirect call or jump: "call *...", "jmp *..." or arm64's "blr x0", "br x0".
bool is_indirect(const std::string &line, const std::vector<std::string> &w) {
  if (w[0] == "blr" || w[0] == "br")
    return true;
  bool jump =
      w[0] == "call" || w[0] == "jmp" || w[0] == "callq" || w[0] == "jmpq" || w[0] == "notrack";
  return jump && line.find('*') != std::string::npos && line.find("@GOTPCREL") == std::string::npos;
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
      section = w[0] == ".section" && w.size() > 1 ? w[1] : w[0];
    bool tls = section.compare(0, 5, ".tbss") == 0 || section.compare(0, 6, ".tdata") == 0;
    if (w[0] == ".type" && w.size() > 2)
      function = w[2] == "function" ? w[1] : "";
    else if (w[0] == ".size" && w.size() > 2 && tls)
      a.thread_locals[w[1]] = static_cast<unsigned>(strtoul(w[2].c_str(), nullptr, 10));
    else if (function.empty() || w[0][0] == '.')
      continue;
    else if (is_indirect(line, w))
      a.indirect.insert(function);
    else
      for (size_t i = 1; i < w.size(); i++)
        a.refers[function].insert(w[i]);
  }
  return a;
}

// reach adds everything that a function refers to, itself or through others.
void reach(const Assembly &a, const std::string &f, std::set<std::string> *seen) {
  if (!seen->insert(f).second || f.find("__sim_stop") != std::string::npos)
    return;
  auto it = a.refers.find(f);
  if (it == a.refers.end())
    return;
  for (auto &next : it->second)
    reach(a, next, seen);
}

void explain(const Assembly &a, ImageFacts *f) {
  std::set<std::string> seen;
  reach(a, f->name, &seen);
  f->fibers = seen.count("__sim_wait") > 0;
  for (auto &s : seen) {
    f->fibers |= a.indirect.count(s) > 0 && s.find("__sim_stop") == std::string::npos;
    auto v = a.thread_locals.find(s);
    if (v != a.thread_locals.end() && s.find("__sim_") == std::string::npos)
      f->shared += (v->second + 15) / 16 * 16;
  }
}

// functions lists the symbols of a library by address.
std::map<uint64_t, std::string> functions(const std::string &library) {
  std::ifstream file(library, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  std::string elf = all.str();
  std::map<uint64_t, std::string> out;
  auto *h = reinterpret_cast<const Elf64_Ehdr *>(elf.data());
  auto *s = reinterpret_cast<const Elf64_Shdr *>(elf.data() + h->e_shoff);
  for (int i = 0; i < h->e_shnum; i++) {
    if (s[i].sh_type != SHT_SYMTAB)
      continue;
    auto *sym = reinterpret_cast<const Elf64_Sym *>(elf.data() + s[i].sh_offset);
    const char *names = elf.data() + s[s[i].sh_link].sh_offset;
    for (size_t n = 0; n < s[i].sh_size / sizeof *sym; n++)
      if (ELF64_ST_TYPE(sym[n].st_info) == STT_FUNC)
        out[sym[n].st_value] = names + sym[n].st_name;
  }
  return out;
}

} // namespace

bool inspect(const std::string &library, const std::string &assembly,
             std::vector<ImageFacts> *facts) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return false;
  auto *table = static_cast<const ImageTable *>(dlsym(handle, "__sim_table"));
  Dl_info info;
  bool ok = table != nullptr && table->count == facts->size() && dladdr(table, &info) != 0;
  auto symbols = functions(library);
  Assembly a = read(assembly);
  for (size_t i = 0; ok && i < facts->size(); i++) {
    ImageFacts &f = (*facts)[i];
    auto at = static_cast<uint64_t>(static_cast<const char *>(table->entries[i].address) -
                                    static_cast<const char *>(info.dli_fbase));
    auto it = symbols.find(at);
    ok = it != symbols.end();
    if (ok)
      f.name = it->second;
    explain(a, &f);
  }
  dlclose(handle);
  return ok;
}

} // namespace sim
