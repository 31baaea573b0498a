// scan.cpp: finds the kernels of preprocessed MSL with their attributes, which clang does not know, the
// variables in threadgroup memory, and the members of structs that kernels take. Everything else is
// left to the compiler.

#include "scan.h"

#include <cctype>
#include <cstdlib>
#include <map>
#include <set>

namespace simmetal {
namespace {

struct Token {
  std::string text;
  size_t at;
};

bool word(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; }

size_t literal(const std::string &s, size_t i) {
  char quote = s[i];
  for (i++; i < s.size() && s[i] != quote && s[i] != '\n'; i++)
    i += s[i] == '\\';
  return i < s.size() ? i + 1 : s.size();
}

std::vector<Token> tokens(const std::string &s) {
  std::vector<Token> out;
  bool fresh = true;
  for (size_t i = 0; i < s.size();) {
    char c = s[i];
    if (c == '\n') {
      fresh = true;
      i++;
      continue;
    }
    if (isspace(static_cast<unsigned char>(c))) {
      i++;
      continue;
    }
    if (fresh && c == '#') {
      i = s.find('\n', i);
      if (i == std::string::npos)
        break;
      continue;
    }
    fresh = false;
    size_t end = i + 1;
    if (word(c))
      while (end < s.size() && (word(s[end]) || (isdigit(static_cast<unsigned char>(c)) && s[end] == '.')))
        end++;
    else if (c == '"' || c == '\'')
      end = literal(s, i);
    else if (s.compare(i, 2, "[[") == 0 || s.compare(i, 2, "::") == 0)
      end = i + 2;
    out.push_back({s.substr(i, end - i), i});
    i = end;
  }
  return out;
}

int depth(const std::string &s) {
  if (s == "[[")
    return 2;
  return (s == "(" || s == "[" || s == "{") - (s == ")" || s == "]" || s == "}");
}

// place returns "file:line" for an offset, by the line markers before it.
std::string place(const std::string &s, size_t at) {
  size_t mark = s.rfind("\n# ", at);
  std::string file = "program_source";
  long line = 1;
  size_t from = 0;
  if (mark != std::string::npos) {
    char *rest;
    line = strtol(s.c_str() + mark + 3, &rest, 10);
    size_t q = s.find('"', mark), e = s.find('"', q + 1);
    file = s.substr(q + 1, e - q - 1);
    from = s.find('\n', mark + 1) + 1;
  }
  for (size_t i = from; i < at; i++)
    line += s[i] == '\n';
  return file + ":" + std::to_string(line) + ":1";
}

class Scanner {
public:
  explicit Scanner(const std::string &program) : s(program), t(tokens(program)) {}

  Scan run() {
    int level = 0;
    for (size_t i = 0; i < t.size(); i++) {
      if (level == 0 && t[i].text == "struct")
        structure(i);
      if (level == 0 && t[i].text == "[[")
        i = outer(i);
      else if (level == 0 && t[i].text == "kernel")
        i = function(i, &level);
      else
        level += brace(i);
      lambda(i);
    }
    out.text += s.substr(copied);
    return out;
  }

private:
  int brace(size_t i) const { return (t[i].text == "{") - (t[i].text == "}"); }

  // skip returns the index after the bracket that closes the one at i.
  size_t skip(size_t i) const {
    for (int n = 0; i < t.size(); i++) {
      n += depth(t[i].text);
      if (n == 0)
        return i + 1;
    }
    return i;
  }

  void drop(size_t from, size_t to) { // the tokens [from, to)
    if (t[from].at < copied || to == 0 || to > t.size())
      return;
    size_t end = t[to - 1].at + t[to - 1].text.size();
    out.text += s.substr(copied, t[from].at - copied);
    copied = end;
  }

  // outer consumes the attributes before a function.
  size_t outer(size_t i) {
    size_t end = skip(i);
    for (size_t k = i; k + 2 < end; k++)
      if (t[k].text == "max_total_threads_per_threadgroup")
        threads = static_cast<uint32_t>(strtoul(t[k + 2].text.c_str(), nullptr, 0));
    bool is_kernel = end > i + 1 && t[i + 1].text == "kernel";
    drop(i, end);
    if (is_kernel)
      out.text += "kernel ";
    named = is_kernel;
    return end - 1;
  }

  size_t function(size_t i, int *level) {
    size_t open = i;
    while (open < t.size() && t[open].text != "(" && t[open].text != ";" && t[open].text != "{")
      open++;
    if (open >= t.size() || t[open].text != "(")
      return i;
    Function f;
    f.name = t[open - 1].text;
    f.max_threads = threads;
    threads = 0;
    size_t close = skip(open) - 1;
    for (size_t from = open + 1; from < close;) {
      size_t to = from;
      for (int n = 0; to < close && (n > 0 || t[to].text != ","); to++)
        n += depth(t[to].text) + (t[to].text == "<") - (t[to].text == ">");
      f.params.push_back(parameter(from, to));
      from = to + 1;
    }
    size_t body = close + 1;
    if (body < t.size() && t[body].text == "[[") {
      body = outer(body) + 1;
      f.max_threads = threads;
      threads = 0;
    }
    if (body >= t.size() || t[body].text != "{")
      return close; // a declaration
    out.kernels.push_back(f);
    size_t end = skip(body);
    for (size_t k = body; k < end; k++) {
      variable(k);
      lambda(k);
    }
    (void)level;
    return end - 1;
  }

  // structure records the members of a plain struct: struct NAME { TYPE NAME, NAME[N]; }.
  void structure(size_t i) {
    if (i + 2 >= t.size() || t[i + 2].text != "{" || (i > 0 && t[i - 1].text == ">"))
      return;
    std::vector<std::string> members;
    size_t end = skip(i + 2) - 1;
    for (size_t k = i + 3; k < end; k++) {
      const std::string &w = t[k].text, &after = t[k + 1].text;
      if (w == "(" || w == "{" || w == ":" || w == "<" || w == "=")
        return;
      if (w == "[")
        k = skip(k) - 1;
      else if (after == ";" || after == "," || after == "[")
        members.push_back(w);
    }
    structs[t[i + 1].text] = members;
  }

  std::string join(size_t from, size_t to) const {
    std::string r;
    for (size_t i = from; i < to; i++)
      r += (r.empty() ? "" : " ") + t[i].text;
    return r;
  }

  Parameter parameter(size_t from, size_t to) {
    Parameter p;
    size_t mark = from;
    while (mark < to && t[mark].text != "[[")
      mark++;
    if (mark == from)
      return p;
    p.name = t[mark - 1].text;
    p.type = join(from, mark - 1);
    for (size_t i = from; i + 1 < mark; i++) {
      const std::string &w = t[i].text;
      p.is_constant |= w == "constant";
      p.read_only |= w == "constant" || (w == "const" && p.pointee.empty());
      p.reference |= w == "&";
      if (w != "constant" && w != "device" && w != "threadgroup" && w != "const" && w != "*" && w != "&" && w != "volatile" && w != "__restrict" && w != "restrict")
        p.pointee += (p.pointee.empty() ? "" : " ") + w;
    }
    auto found = structs.find(p.pointee);
    if (found != structs.end())
      p.members = found->second;
    if (mark < to) {
      p.attribute = t[mark + 1].text;
      if (mark + 3 < to && t[mark + 2].text == "(")
        p.index = static_cast<uint32_t>(strtoul(t[mark + 3].text.c_str(), nullptr, 0));
      drop(mark, to);
    } else {
      out.errors += place(s, t[from].at) + ": error: invalid type or missing attribute for parameter '" + p.name + "' of a kernel\n";
    }
    return p;
  }

  // variable makes one in threadgroup memory static, at the beginning of a statement.
  void variable(size_t k) {
    if (t[k].text != "threadgroup" || k == 0)
      return;
    size_t first = k;
    if (t[k - 1].text == ")") { // alignas(16) threadgroup
      while (first > 0 && t[first].text != "alignas")
        first--;
    }
    const std::string &before = t[first - 1].text;
    if (before != "{" && before != "}" && before != ";")
      return;
    // A pointer to threadgroup memory is itself a variable of the thread.
    for (size_t i = k; i < t.size() && t[i].text != ";" && t[i].text != "="; i++)
      if (t[i].text == "*" || t[i].text == "&")
        return;
    out.text += s.substr(copied, t[k].at - copied) + "__sim_group ";
    copied = t[k].at;
  }

  // lambda finds [&], [=] and [] before a parameter list or body, since MSL before 3.2 has no
  // lambdas.
  void lambda(size_t k) {
    static const std::set<std::string> before = {"(", ",", "=", "{", ";", "return", "}"};
    if (k == 0 || t[k].text != "[" || before.count(t[k - 1].text) == 0)
      return;
    size_t end = skip(k);
    if (end < t.size() && (t[end].text == "(" || t[end].text == "{"))
      out.errors += place(s, t[k].at) + ": error: lambda expressions are not supported in Metal\n";
  }

  const std::string &s;
  std::vector<Token> t;
  size_t copied = 0;
  uint32_t threads = 0;
  bool named = false;
  std::map<std::string, std::vector<std::string>> structs;
  Scan out;
};

} // namespace

Scan scan(const std::string &preprocessed) { return Scanner(preprocessed).run(); }

} // namespace simmetal
