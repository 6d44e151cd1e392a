// Worlds of real processes, which can be killed and stopped.
#pragma once

#include <sys/types.h>

#include "headrace/tests/support/test.h"

namespace headrace::test {

// A program that runs beside the test and is killed with it. Its output goes to the test's standard error.
class ChildProcess {
 public:
  // `variables`, as "RANK=1", are added to the environment. Throws std::runtime_error if it cannot be started.
  ChildProcess(const std::vector<std::string>& variables, const std::vector<std::string>& words);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t process() const noexcept { return process_; }
  // Returns its exit status, 128 + the signal that ended it, or -1 if it still runs after `seconds`.
  int wait(double seconds);

 private:
  pid_t process_ = -1;
  int status_ = -1;
};

// A new folder in that for temporary files, which is removed with its content.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  void clear() const;
  // Returns the text of a file in it, once it is there; empty if it is not within `seconds`.
  std::string await(const std::string& name, double seconds) const;
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

}  // namespace headrace::test
