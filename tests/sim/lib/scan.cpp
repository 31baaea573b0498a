// scan.cpp: finds the kernels of a preprocessed program, and rewrites extern __shared__ arrays,
// which macros cannot do. It follows brackets and namespaces and leaves everything else to the
// compiler.

#include "compile.h"

#include <cctype>
#include <cstdlib>

namespace sim {
namespace {

struct Token {
  std::string text;
  size_t at; // in the program
};

bool word(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

// literal returns the end of the string or character literal at i.
size_t literal(const std::string &s, size_t i, bool raw) {
  char quote = s[i];
  if (raw) {
    size_t open = s.find('(', i);
    std::string close = ")" + s.substr(i + 1, open - i - 1) + "\"";
    size_t end = open == std::string::npos ? open : s.find(close, open);
    return end == std::string::npos ? s.size() : end + close.size();
  }
  for (i++; i < s.size() && s[i] != quote && s[i] != '\n'; i++)
    i += s[i] == '\\';
  return i < s.size() ? i + 1 : s.size();
}

std::vector<Token> tokens(const std::string &s) {
  std::vector<Token> out;
  bool fresh = true; // at the beginning of a line
  for (size_t i = 0; i < s.size();) {
    char c = s[i];
    size_t end = i + 1;
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
    if (word(c))
      while (end < s.size() && (word(s[end]) || (isdigit(static_cast<unsigned char>(c)) &&
                                                 (s[end] == '.' || s[end] == '\''))))
        end++;
    else if (c == '"' || c == '\'')
      end = literal(s, i, c == '"' && i > 0 && s[i - 1] == 'R');
    else if (s.compare(i, 2, "::") == 0)
      end = i + 2;
    out.push_back({s.substr(i, end - i), i});
    i = end;
  }
  return out;
}

// skip returns the index after the bracket that closes the one at i.
size_t skip(const std::vector<Token> &t, size_t i) {
  int depth = 0;
  for (; i < t.size(); i++) {
    const std::string &s = t[i].text;
    depth += s == "(" || s == "[" || s == "{";
    depth -= s == ")" || s == "]" || s == "}";
    if (depth == 0)
      return i + 1;
  }
  return i;
}

bool attribute(const std::string &s) {
  return s == "__attribute__" || s == "__align__" || s == "alignas" || s == "__launch_bounds__" ||
         s == "__builtin_align__";
}

std::string join(const std::vector<Token> &t, size_t from, size_t to) {
  std::string s;
  for (size_t i = from; i < to; i++)
    s += (s.empty() ? "" : " ") + t[i].text;
  return s;
}

class Scanner {
public:
  explicit Scanner(const std::string &program) : source(program), t(tokens(program)) {}

  Scanned run() {
    while (i < t.size())
      step();
    out.text += source.substr(copied);
    return out;
  }

private:
  // step consumes one token at namespace scope, or a whole body.
  void step() {
    const std::string &s = t[i].text;
    if ((s == "extern" && shared(i, false)) || (s == "asm" && assembly(i)))
      return;
    if (s == "(" || s == "[") {
      i = skip(t, i);
    } else if (s == "{") {
      open();
    } else if (s == "}") {
      if (!scopes.empty())
        scopes.pop_back();
      i++;
      start = i;
    } else if (s == ";") {
      declaration(false);
      start = ++i;
    } else {
      i++;
    }
  }

  void open() {
    size_t first = start;
    if (first < i && t[first].text == "inline")
      first++;
    bool space = first < i && t[first].text == "namespace";
    bool linkage = i - start == 2 && t[start].text == "extern" && t[start + 1].text[0] == '"';
    if (space || linkage) {
      scopes.push_back(space ? join(t, first + 1, i) : "");
      start = ++i;
      return;
    }
    declaration(true);
    size_t end = skip(t, i);
    for (; i < end; i++)
      if ((t[i].text == "extern" && shared(i, true)) || assembly(i))
        i--;
    // After a function's body a new declaration begins; after a struct's body its variables follow.
    i = end;
    if (function)
      start = i;
  }

  // declaration examines the tokens from start to i.
  void declaration(bool body) {
    bool global = false, is_template = false;
    unsigned threads = 0;
    size_t paren = 0;
    function = false;
    for (size_t k = start; k < i; k++) {
      const std::string &s = t[k].text;
      if (attribute(s)) {
        if (s == "__launch_bounds__" && k + 2 < i)
          threads = static_cast<unsigned>(strtoul(t[k + 2].text.c_str(), nullptr, 0));
        k = skip(t, k + 1) - 1;
      } else if (s == "__global__") {
        global = true;
      } else if (s == "template" && k == start) {
        is_template = k + 1 < i && t[k + 1].text == "<";
      } else if (s == "(" && paren == 0) {
        paren = k;
      }
    }
    function = paren > 0;
    if (!global || paren == 0 || is_template || (!body && t[start].text != "template"))
      return;
    out.kernels.push_back({name(paren), threads});
  }

  // name returns the kernel's name, which ends before the parameter list, with its namespaces.
  std::string name(size_t paren) {
    size_t k = paren - 1;
    if (t[k].text == ">") // arguments of an explicit instantiation
      for (int depth = 0; k > start; k--) {
        depth += t[k].text == ">";
        depth -= t[k].text == "<";
        if (depth == 0) {
          k--;
          break;
        }
      }
    while (k >= start + 2 && t[k - 1].text == "::")
      k -= 2;
    return path() + join(t, k, paren);
  }

  std::string path() const {
    std::string p;
    for (auto &s : scopes)
      p += s.empty() ? "" : s + "::";
    return p;
  }

  // shared rewrites the declaration at k if it is one of dynamic shared memory.
  bool shared(size_t &k, bool local) {
    size_t end = k, bracket = 0, last = 0;
    bool is = false;
    std::string type;
    for (end = k + 1; end < t.size() && t[end].text != ";" && t[end].text != "{"; end++) {
      const std::string &s = t[end].text;
      if (s == "__shared__")
        is = true;
      else if (attribute(s))
        end = skip(t, end + 1) - 1;
      else if (s == "[" && bracket == 0)
        bracket = end;
      else if (bracket == 0) {
        type += (type.empty() ? "" : " ") + (last > 0 ? t[last].text : "");
        last = end;
      }
    }
    if (!is || bracket == 0 || last == 0 || end == t.size() || t[end].text != ";")
      return false;
    std::string name = t[last].text, rest = join(t, bracket + 2, end);
    out.text += source.substr(copied, t[k].at - copied);
    if (local) {
      out.text += type + " (*const " + name + ")" + rest + " = (" + type + " (*)" + rest +
                  ")__sim_me->ctx->local;";
    } else {
      out.text += "static thread_local " + type + " (*" + name + ")" + rest +
                  " __asm__(\"__sim_dynamic_" + std::to_string(out.dynamic.size()) + "\");";
      out.dynamic.push_back(path() + name);
    }
    copied = t[end].at + 1;
    k = end + 1;
    if (!local)
      start = k;
    return true;
  }

  // assembly turns asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)) into the call
  // __sim_ptx_cvt_f32_f16(f, h): the prelude has a few instructions, and for others the compiler
  // reports an unknown function.
  bool assembly(size_t &k) {
    if (t[k].text != "asm" && t[k].text != "__asm__" && t[k].text != "__asm")
      return false;
    size_t open = k + 1;
    while (open < t.size() && (t[open].text == "volatile" || t[open].text == "__volatile__"))
      open++;
    if (open + 1 >= t.size() || t[open].text != "(" || t[open + 1].text[0] != '"')
      return false;
    size_t end = skip(t, open);
    std::string name = "__sim_ptx_", args;
    for (char c : t[open + 1].text.substr(1)) {
      if (!word(c) && c != '.')
        break;
      name += c == '.' ? '_' : c;
    }
    for (size_t n = open + 2; n < end - 1; n++)
      if (t[n].text == "(") {
        size_t close = skip(t, n);
        args += (args.empty() ? "" : ", ") + join(t, n, close);
        n = close - 1;
      }
    out.text += source.substr(copied, t[k].at - copied) + name + "(" + args + ")";
    copied = t[end - 1].at + 1;
    k = end;
    return true;
  }

  const std::string &source;
  std::vector<Token> t;
  size_t i = 0, start = 0, copied = 0;
  bool function = false;
  std::vector<std::string> scopes; // names of the namespaces around; "" for a linkage block
  Scanned out;
};

} // namespace

Scanned scan(const std::string &preprocessed) { return Scanner(preprocessed).run(); }

} // namespace sim
