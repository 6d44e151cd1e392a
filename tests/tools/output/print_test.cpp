// What is printed, for people and as JSON.
#include <new>

#include "headrace/devices/workers.h"
#include "headrace/tests/support/command.h"
#include "headrace/tests/support/test.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {
namespace {

struct Ending {
  std::shared_ptr<std::exception> error;
  int status;
};

template <typename T, typename... Arguments>
Ending ends(int status, Arguments&&... arguments) {
  return {.error = std::make_shared<T>(std::forward<Arguments>(arguments)...), .status = status};
}

TEST(ExitStatus, IsTwoForWrongUsageAlone) {
  const std::vector<Ending> endings = {
      ends<ConfigError>(2, "--epochs 0: must be at least 1"),
      ends<Error>(1, ErrorCode::kInvalidArgument, "the loss is not a finite number in step 3"),
      ends<Error>(1, ErrorCode::kUnsupported, "the loader was started before fork()"),
      ends<Error>(1, ErrorCode::kCancelled, "interrupted after step 3"),
      ends<StoppedBySignal>(143, 15, "terminated after step 3"),
      ends<Error>(1, ErrorCode::kTimeout, "nothing came for 120 s"),
      ends<Error>(1, ErrorCode::kInternal, "record 3 is twice in epoch 0"),
      ends<Error>(1, ErrorCode::kOutOfMemory, "a record needs more than the budget"),
      ends<DataError>(1, ErrorCode::kUnsupported, "is 7-Zip, which is not read", DataLocation{.source = "a.7z"}),
      ends<DataError>(1, ErrorCode::kInvalidArgument, "is not a regular file", DataLocation{.source = "pipe"}),
      ends<DataError>(1, ErrorCode::kNotFound, "does not exist", DataLocation{.source = "a.tar"}),
      ends<DataError>(1, ErrorCode::kDataCorrupt, "is cut short", DataLocation{.source = "a.tar"}),
      ends<DataError>(1, ErrorCode::kIo, "cannot write: no space left", DataLocation{.source = "out"}),
      ends<DeviceError>(1, ErrorCode::kInvalidArgument, "was submitted to another device's stream", "cpu:0"),
      ends<DeviceError>(1, ErrorCode::kUnsupported, "cuDNN has no kernel for it", "cuda:0"),
      ends<DeviceError>(1, ErrorCode::kOutOfMemory, "out of memory", "cuda:0"),
      ends<WorkersDiffer>(1, "the workers differ in their seeds"),
      ends<EndedByAnother>(75, WorkerLost(ErrorCode::kCancelled, "worker 1 was lost", "worker 0")),
      ends<std::runtime_error>(1, "a library's own"),
      ends<std::bad_alloc>(1),
  };
  for (const Ending& ending : endings)
    EXPECT_EQ(exit_status(*ending.error), ending.status) << ending.error->what();
}

std::string described(std::int64_t global, int replicas) {
  return local_batch(make_pipeline("trivial", {}), global, replicas).describe();
}

TEST(LocalBatch, IsSaidForEachReplica) {
  EXPECT_EQ(described(512, 8), "batch: 512 examples, 64 on each of 8 replicas");
  EXPECT_EQ(described(10, 4), "batch: 10 examples, 2 or 3 on each of 4 replicas");
  EXPECT_EQ(described(3, 4), "batch: 3 examples, 0 or 1 on each of 4 replicas");
  EXPECT_EQ(described(1, 1), "batch: 1 example");
  EXPECT_EQ(described(2'000'000, 2), "batch: 1,048,576 examples, 524,288 on each of 2 replicas")
      << "all there are";
}

TEST(LocalBatch, IsPrintedByTheCommands) {
  const auto output = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HEADRACE_BINARY);
    arguments.insert(arguments.end(), {"--pipeline", "trivial", "--replicas", "3", "--global-batch", "64"});
    const test::CommandResult result = test::run_command(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  };
  const std::string line = "\nbatch: 64 examples, 21 or 22 on each of 3 replicas\n";
  EXPECT_NE(output({"explain"}).find(line), std::string::npos);
  EXPECT_NE(output({"bench", "input", "--seconds", "0.1"}).find(line), std::string::npos);
  EXPECT_NE(output({"bench", "input", "--seconds", "0.1", "--json", "-"}).find("\"local_batch\":22"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::tools
