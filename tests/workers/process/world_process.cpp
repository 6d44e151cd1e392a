// A worker as a process of its own, started by tests: joins the world that its environment describes.
//   world_process suite FOLDER                exchanges what tests/workers/transport_suite.h asks for
//   world_process loop FOLDER SECONDS COUNT   sums COUNT values until the world fails; a call may take SECONDS
// In FOLDER each worker writes RANK.ready, with its process's number, once it sums, and RANK.end, with the
// transport or with the error.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/devices/base/signals.h"
#include "headrace/tests/workers/transport_suite.h"

namespace headrace::test {
namespace {

// Puts the file there at once with its text.
void write(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path beside = path.string() + ".tmp";
  std::ofstream(beside) << text;
  std::filesystem::rename(beside, path);
}

void run_suite(Workers& workers) {
  for (const std::size_t count : {1, 7, 1000, 70'001, 1'000'000}) require_tree_sums(workers, count);
  require_any_mix_of_sizes(workers);
}

void sum_for_ever(Workers& workers, std::size_t values_a_call, const std::string& own_files) {
  std::vector<float> values(values_a_call, 1.0F);
  for (int step = 0;; ++step) {
    workers.set_moment("step " + std::to_string(step));
    workers.all_reduce_sum(values);
    if (step == 20) write(own_files + ".ready", std::to_string(getpid()));
    usleep(1000);
  }
}

int run(int count, char** words) {
  const WorkerPlan plan = plan_workers();
  const std::string own_files = std::string(words[2]) + "/" + std::to_string(plan.rank);
  try {
    const double limit = count > 4 ? std::stod(words[3]) : 20;
    const auto workers = open_world(plan, {.start_timeout_seconds = 20, .call_timeout_seconds = limit});
    if (std::string(words[1]) == "loop") sum_for_ever(*workers, std::stoul(words[4]), own_files);
    run_suite(*workers);
    write(own_files + ".end", workers->transport().value + ": " + workers->transport().from);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    write(own_files + ".end", error.what());
    return 75;
  }
}

}  // namespace
}  // namespace headrace::test

int main(int count, char** words) {
  headrace::handle_signals();
  headrace::handle_first_stop([](int) {}, {SIGTERM});  // a trainer ends its step first
  return headrace::test::run(count, words);
}
