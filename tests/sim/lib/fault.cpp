// fault.cpp: faults on demand; fault.h documents them.

#include "fault.h"
#include "flavour.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

namespace sim {
namespace {

// The usual codes are numbers that CUDA and HIP share.
const struct {
  const char *name;
  int code;
} kinds[K_COUNT] = {
    {"other", 999},   {"alloc", 2},    {"free", 999},        {"pinned", 2}, {"copy", 999},
    {"fill", 999},    {"launch", 701}, {"launch-late", 719}, {"load", 200}, {"find", 500},
    {"stream", 2},    {"event", 2},    {"record", 999},      {"sync", 999}, {"graph", 999},
    {"context", 999}, {"compile", 6},
    {"join", 2},      {"join-hang", 2}, {"collective", 1},   {"collective-late", 6}, {"collective-hang", 1},
};
struct Rule {
  long at = 0; // 0: none
  bool on = false;
  int code = 0;
};

struct Plan {
  Rule rules[K_COUNT], any, lost;
  Settings settings{2, flavour.driver, 0, flavour.arch, 8192, 0, 0};
  std::set<std::string> hidden;
};

struct State {
  std::mutex mu;
  Plan plan;
  long calls = 0, by_kind[K_COUNT] = {};
};

long number(const char *text, const char **end) {
  char *e;
  long n = strtol(text, &e, 10);
  *end = e;
  return e == text ? -1 : n;
}

bool parse_rule(const char *value, Rule *r, int code) {
  const char *end;
  r->at = number(value, &end);
  r->on = *end == '+';
  end += r->on;
  r->code = code;
  if (*end == '=')
    r->code = static_cast<int>(number(end + 1, &end));
  return r->at > 0 && r->code > 0 && *end == 0;
}

bool parse_word(const std::string &word, Plan *p) {
  size_t colon = word.find(':');
  if (colon == std::string::npos)
    return false;
  std::string name = word.substr(0, colon);
  const char *value = word.c_str() + colon + 1, *end;
  for (int k = 0; k < K_COUNT; k++)
    if (name == kinds[k].name)
      return parse_rule(value, &p->rules[k], kinds[k].code);
  if (name == "any")
    return parse_rule(value, &p->any, 999);
  if (name == "lost")
    return parse_rule(value, &p->lost, code_lost);
  if (name == "symbol")
    return p->hidden.insert(value).second;
  long n = number(value, &end);
  Settings &s = p->settings;
  if (n < 0 || *end != 0)
    return false;
  if (name == "devices" && n <= 64)
    s.devices = static_cast<int>(n);
  else if (name == "driver")
    s.driver = static_cast<int>(n);
  else if (name == "init")
    s.init = static_cast<int>(n);
  else if (name == "arch")
    s.arch = static_cast<int>(n);
  else if (name == "memory")
    s.memory_mib = n;
  else if (name == "slow-copy")
    s.slow_copy_ms = n;
  else if (name == "slow-kernel")
    s.slow_kernel_ms = n;
  else
    return false;
  return true;
}

bool parse(const char *text, Plan *p) {
  std::string rest = text;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string word = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    if (!word.empty() && !parse_word(word, p))
      return false;
  }
  return true;
}

// base returns the settings from the environment, with which every control call starts.
Plan base() {
  Plan p;
  if (const char *n = getenv("CONCORD_SIM_DEVICES"))
    parse_word(std::string("devices:") + n, &p);
  if (const char *n = getenv("CONCORD_SIM_MEMORY")) // MiB
    parse_word(std::string("memory:") + n, &p);
  if (const char *n = getenv("CONCORD_SIM_ARCH"))
    parse_word(std::string("arch:") + n, &p);
  return p;
}

// The state is never destroyed: worker threads outlive the end of main.
State &state() {
  static State *s = [] {
    State *s = new State;
    s->plan = base();
    Plan p = s->plan;
    const char *text = getenv("CONCORD_SIM_FAULT");
    if (text != nullptr && parse(text, &p))
      s->plan = p;
    else if (text != nullptr)
      fprintf(stderr, "CONCORD_SIM_FAULT: cannot read %s\n", text);
    return s;
  }();
  return *s;
}

int fires(const Rule &r, long n) {
  return r.at > 0 && (n == r.at || (r.on && n > r.at)) ? r.code : 0;
}

} // namespace

int call(Kind kind) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  s.calls++;
  long n = ++s.by_kind[kind];
  if (kind != K_COMPILE && s.plan.lost.at > 0 && s.calls >= s.plan.lost.at)
    return s.plan.lost.code;
  int code = fires(s.plan.any, s.calls);
  return code != 0 ? code : fires(s.plan.rules[kind], n);
}

int late(Kind kind) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  return fires(s.plan.rules[kind], ++s.by_kind[kind]);
}

Settings settings() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  return s.plan.settings;
}

bool symbol_hidden(const std::string &name) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  return s.plan.hidden.count(name) > 0;
}

bool verbose() {
  static const bool v = getenv("CONCORD_SIM_VERBOSE") != nullptr;
  return v;
}

} // namespace sim

using namespace sim;

int concord_sim_control(const char *command) {
  State &s = state();
  Plan p = base();
  if (command == nullptr || !parse(command, &p))
    return -1;
  std::lock_guard<std::mutex> lock(s.mu);
  s.plan = p;
  s.calls = 0;
  memset(s.by_kind, 0, sizeof s.by_kind);
  return 0;
}

long concord_sim_count(const char *what) {
  State &s = state();
  std::string name = what == nullptr ? "" : what;
  {
    std::lock_guard<std::mutex> lock(s.mu);
    if (name == "calls")
      return s.calls;
    for (int k = 0; k < K_COUNT; k++)
      if (name == std::string("calls:") + kinds[k].name)
        return s.by_kind[k];
  }
  return gauge(name);
}
