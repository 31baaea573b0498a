// process.cpp: private directories and programs run in them.

#include "process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <csignal>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace sim {

bool put(const std::string &path, const std::string &text) {
  std::ofstream f(path, std::ios::binary);
  f << text;
  f.close();
  return f.good();
}

std::string get(const std::string &path) {
  std::ifstream f(path, std::ios::binary);
  std::ostringstream s;
  s << f.rdbuf();
  return s.str();
}

Directory::Directory() {
  const char *base = getenv("TMPDIR");
  std::string name = std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/concord-sim-XXXXXX";
  if (mkdtemp(&name[0]) != nullptr)
    path = name;
}

static void remove_all(const std::string &path) {
  if (DIR *d = opendir(path.c_str())) {
    while (dirent *e = readdir(d))
      if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
        remove_all(path + "/" + e->d_name);
    closedir(d);
    rmdir(path.c_str());
    return;
  }
  unlink(path.c_str());
}

Directory::~Directory() {
  if (!path.empty())
    remove_all(path);
}

static std::string search_path() {
  const char *path = getenv("PATH");
  return path != nullptr ? path : "/usr/bin:/bin";
}

std::string find_program(const std::vector<std::string> &names) {
  for (auto &n : names) {
    std::istringstream in(search_path());
    for (std::string dir; std::getline(in, dir, ':');)
      if (access((dir + "/" + n).c_str(), X_OK) == 0)
        return dir + "/" + n;
  }
  return "";
}

bool run(const std::string &dir, const std::vector<std::string> &args) {
  std::vector<char *> argv;
  for (auto &a : args)
    argv.push_back(const_cast<char *>(a.c_str()));
  argv.push_back(nullptr);
  std::string path = "PATH=" + search_path(), tmp = "TMPDIR=" + dir, lang = "LC_ALL=C";
  char *env[] = {&path[0], &tmp[0], &lang[0], nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addchdir_np(&files, dir.c_str());
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "errors", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_init(&attr);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
  pid_t pid;
  int rc = posix_spawnp(&pid, argv[0], &files, &attr, argv.data(), env), status = 1;
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  if (rc != 0) {
    put(dir + "/errors", args[0] + ": error: " + strerror(rc) + "\n");
    return false;
  }
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace sim
