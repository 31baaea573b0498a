// kept.cpp: compiled programs in the directory that CONCORD_SIM_COMPILED names, so that a process
// without g++ can run what an earlier one has compiled. The name of a file depends only on what
// goes into a compilation.

#include "compile.h"
#include "process.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace sim {
namespace {

void put_number(std::string *to, uint64_t n) {
  for (int i = 0; i < 8; i++)
    *to += static_cast<char>(n >> 8 * i);
}

void put_text(std::string *to, const std::string &s) {
  put_number(to, s.size());
  *to += s;
}

void put_list(std::string *to, const std::vector<std::string> &list) {
  put_number(to, list.size());
  for (auto &s : list)
    put_text(to, s);
}

// Reader reads what the functions above have written; ok is false after the first thing that is
// not there.
struct Reader {
  const std::string &from;
  size_t at = 0;
  bool ok = true;
  uint64_t number() {
    uint64_t n = 0;
    ok = ok && from.size() - at >= 8;
    for (int i = 0; ok && i < 8; i++)
      n |= static_cast<uint64_t>(static_cast<unsigned char>(from[at++])) << 8 * i;
    return n;
  }
  std::string text() {
    uint64_t n = number();
    ok = ok && n <= from.size() - at;
    at += ok ? n : 0;
    return ok ? from.substr(at - n, n) : "";
  }
};

uint64_t fnv(const std::string &s, uint64_t h) {
  for (char c : s)
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

} // namespace

std::string kept_path(const Source &s, const Dialect &d) {
  const char *dir = getenv("CONCORD_SIM_COMPILED");
  if (dir == nullptr || *dir == 0)
    return "";
  std::string all = SIM_SOURCES; // what these libraries were built from
  put_list(&all, {s.name, s.text, s.target, s.cxx20 ? "20" : "17"});
  put_number(&all, s.headers.size());
  for (auto &h : s.headers)
    put_list(&all, {h.first, h.second});
  for (auto *list : {&s.options, &s.before, &s.expressions, &d.macros, &d.prelude})
    put_list(&all, *list);
  for (auto &o : s.options)
    if (o.compare(0, 2, "-I") == 0) // the text of these files is not known here
      return "";
  char name[64];
  snprintf(name, sizeof name, "/%016llx%016llx",
           static_cast<unsigned long long>(fnv(all, 14695981039346656037u)),
           static_cast<unsigned long long>(fnv(all, 0x6c62272e07bb0142u)));
  return dir + std::string(name);
}

bool kept(const std::string &path, Compiled *out) {
  std::string bytes = path.empty() ? "" : get(path);
  Reader r{bytes};
  Compiled c;
  c.ok = r.number() == 1;
  c.log = r.text();
  for (uint64_t n = r.number(); r.ok && n > 0; n--)
    c.lowered.push_back(r.text());
  c.binary = r.text();
  c.text = r.text();
  if (!r.ok || r.at != bytes.size())
    return false;
  *out = c;
  return true;
}

void keep(const std::string &path, const Compiled &c) {
  // A compiler that is missing, or that failed for another reason than the program, is no verdict.
  if (path.empty() ||
      (!c.ok && (c.log.find(" detected in the compilation of ") == std::string::npos ||
                 c.log.find("catastrophic error") != std::string::npos)))
    return;
  std::string bytes;
  put_number(&bytes, c.ok);
  put_text(&bytes, c.log);
  put_list(&bytes, c.lowered);
  put_text(&bytes, c.binary);
  put_text(&bytes, c.text);
  static std::atomic<unsigned> count{0};
  std::string part = path + "." + std::to_string(getpid()) + "." + std::to_string(count++);
  if (!put(part, bytes) || rename(part.c_str(), path.c_str()) != 0)
    unlink(part.c_str());
}

} // namespace sim
