#include <new>

#include "headrace/devices/workers.h"
#include "headrace/tests/support/test.h"
#include "headrace/tools/output/print.h"

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

}  // namespace
}  // namespace headrace::tools
