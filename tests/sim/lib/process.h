// process.h: private directories and programs run in them, with a reduced environment and no shell.

#ifndef CONCORD_SIM_PROCESS_H
#define CONCORD_SIM_PROCESS_H

#include <string>
#include <vector>

namespace sim {

bool put(const std::string &path, const std::string &text);
std::string get(const std::string &path); // "" if it cannot be read

// Directory is a private one below $TMPDIR, removed at the end; path is "" if there is none.
struct Directory {
  std::string path;
  Directory();
  ~Directory();
  Directory(const Directory &) = delete;
  Directory &operator=(const Directory &) = delete;
};

// find_program returns the first of the names that $PATH has, or "".
std::string find_program(const std::vector<std::string> &names);

// run starts a program, of that path or of $PATH, in dir and waits. Its messages go to the file errors there.
bool run(const std::string &dir, const std::vector<std::string> &args);

} // namespace sim

#endif
