#include <omp.h>

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(CpuStream, ItsWorkerHasTheDevicesOpenMpThreads) {
  for (const int threads : {1, 2}) {
    CpuDevice device("cpu:0", threads);
    CpuStream stream(device, threads);
    int seen = 0;
    stream.submit([&] { seen = omp_get_max_threads(); });
    stream.synchronize();
    EXPECT_EQ(seen, threads);
  }
}

TEST(CpuStream, SkippedRunsInPlaceOfWorkAfterAnError) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  int ran = 0;
  int skipped = 0;
  const auto submit = [&] { stream.submit([&] { ++ran; }, [&] { ++skipped; }); };
  submit();
  stream.submit([] { throw std::runtime_error("broken"); });
  submit();
  stream.begin_capture();
  submit();
  const auto work = stream.end_capture();
  stream.launch(*work);
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(skipped, 2);
}

TEST(CpuStream, ItsOwnWorkMayNotSubmitOrWait) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  stream.submit([&] { stream.submit([] {}); });
  EXPECT_THROW(stream.synchronize(), DeviceError);
  stream.submit([&] { stream.synchronize(); });
  EXPECT_THROW(stream.synchronize(), DeviceError);
}

TEST(CpuStream, LetsGoOfWhatItsWorkHeld) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  auto held = std::make_shared<int>(1);
  stream.submit([held] { ++*held; });
  stream.synchronize();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 2);
}

TEST(CpuStream, AnEmptyFunctionIsRefusedAtOnce) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  EXPECT_THROW(stream.submit({}), Error);
}

// Another backend's event must not be mistaken for one of ours.
struct ForeignEvent final : Event {
  bool ready() const override { return true; }
  void wait() const override {}
  std::optional<std::int64_t> ns_since(const Event&) const override { return std::nullopt; }
};

TEST(CpuStream, EventsOfOtherDevicesAreRefused) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  ForeignEvent event;
  EXPECT_THROW(stream.record(event), DeviceError);
  EXPECT_THROW(stream.wait(event), DeviceError);
  CapturedWork foreign;
  EXPECT_THROW(stream.launch(foreign), DeviceError);
}

}  // namespace
}  // namespace headrace::test
