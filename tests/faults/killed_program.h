// A test that is killed: this program, started again for one disabled test, since oneTBB's workers do not survive
// fork().
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/rng.h"

namespace headrace::test {

// What the killed test was started for.
struct KilledPart {
  std::filesystem::path path;
  int attempt = 0;

  // Returns nothing where the test runs by itself.
  static std::optional<KilledPart> of_this_process() {
    const char* const path = std::getenv("HEADRACE_KILLED_PATH");
    if (path == nullptr) return std::nullopt;
    return KilledPart{.path = path, .attempt = std::stoi(std::getenv("HEADRACE_KILLED_ATTEMPT"))};
  }
  std::filesystem::path begun() const { return path.string() + ".begun"; }
  void begin() const { append_to_file(begun(), "x"); }
};

inline pid_t start_killed_part(const std::string& test, const KilledPart& part) {
  const std::string filter = "--gtest_filter=" + test, number = std::to_string(part.attempt);
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("HEADRACE_KILLED_PATH", part.path.c_str(), 1);
  setenv("HEADRACE_KILLED_ATTEMPT", number.c_str(), 1);
  for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(variable);
  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  execl("/proc/self/exe", "killed", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
  _exit(127);
}

// True where it came to its end. It is killed shortly after it began, and every second time after it has got
// further, as `progress` says: where it is slow to begin, it would otherwise never get on.
inline bool run_and_kill(const std::string& test, const KilledPart& part,
                         const std::function<std::uintmax_t()>& progress, Philox& random) {
  std::filesystem::remove(part.begun());
  const auto before = progress();
  const pid_t child = start_killed_part(test, part);
  int status = 0;
  bool ended = false;
  const Stopwatch watch;
  while (!ended && !(part.attempt % 2 == 0 ? std::filesystem::exists(part.begun()) : progress() != before) &&
         watch.seconds() < 30) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ended = waitpid(child, &status, WNOHANG) == child;
  }
  if (!ended) {
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ADD_FAILURE() << "it failed: " << WEXITSTATUS(status);
  return WIFEXITED(status);
}

}  // namespace headrace::test
