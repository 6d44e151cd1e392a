// A command that is looked at, and sent signals, while it runs.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file.h"

namespace headrace::test {

// A command that runs while the test goes on; its output goes into a file.
class RunningCommand {
 public:
  // `variables`: "NAME=value", besides those of the test.
  RunningCommand(std::vector<std::string> arguments, std::filesystem::path output,
                 std::vector<std::string> variables = {})
      : output_(std::move(output)) {
    arguments.insert(arguments.begin(), HEADRACE_BINARY);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    child_ = fork();
    if (child_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    for (std::string& variable : variables) putenv(variable.data());
    execv(words.front(), words.data());
    _exit(127);
  }

  bool ended() {
    if (!ended_) ended_ = waitpid(child_, &status_, WNOHANG) == child_;
    return ended_;
  }
  // Waits for what it does meanwhile; false where it ends before, or a minute is over.
  bool wait_until(const std::function<bool()>& done) {
    const Stopwatch watch;
    while (!done()) {
      if (ended() || watch.seconds() > 60) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void send(int signal) const { kill(child_, signal); }
  // As a shell says it.
  int wait() {
    if (!ended_) waitpid(child_, &status_, 0);
    ended_ = true;
    return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }
  std::string output() const {
    const std::vector<std::byte> bytes = read_whole_file(output_);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::filesystem::path output_;
  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace headrace::test
