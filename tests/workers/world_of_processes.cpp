#include <signal.h>
#include <spawn.h>
#include <stdlib.h>  // NOLINT: mkdtemp is POSIX's
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/devices/base/clock.h"
#include "headrace/tests/workers/world_of_processes.h"

extern char** environ;  // NOLINT: POSIX's name

namespace headrace::test {
namespace {

constexpr auto kLook = std::chrono::milliseconds(5);

// Failing workers of this program write their calls where they are removed at its end.
class CallsInScratchFolder : public ::testing::Environment {
 public:
  void SetUp() override {
    folder_ = std::make_unique<ScratchFolder>();
    ::setenv("HEADRACE_WORKERS_DUMP", folder_->path().c_str(), 0);
  }
  void TearDown() override { folder_.reset(); }

 private:
  std::unique_ptr<ScratchFolder> folder_;
};
[[maybe_unused]] const auto* const calls_in_scratch_folder =
    ::testing::AddGlobalTestEnvironment(new CallsInScratchFolder());

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& variables, const std::vector<std::string>& words) {
  std::vector<std::string> all{"/usr/bin/env"};
  all.insert(all.end(), variables.begin(), variables.end());
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (::posix_spawn(&process_, argv[0], nullptr, nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + words[0]);
  }
}

ChildProcess::~ChildProcess() {
  if (status_ >= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

int ChildProcess::wait(double seconds) {
  const Stopwatch waited;
  while (status_ < 0) {
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (waited.seconds() > seconds) {
      return -1;
    } else {
      std::this_thread::sleep_for(kLook);
    }
  }
  return status_;
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "headrace-world-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ScratchFolder::clear() const {
  for (const std::string& name : names()) std::filesystem::remove_all(path_ / name);
}

std::string ScratchFolder::await(const std::string& name, double seconds) const {
  const Stopwatch waited;
  while (!std::filesystem::exists(path_ / name)) {
    if (waited.seconds() > seconds) return {};
    std::this_thread::sleep_for(kLook);
  }
  std::ifstream file(path_ / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> ScratchFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
  return names;
}

}  // namespace headrace::test
