// When kernels are loaded: one that is loaded at its first use may wait for the GPU, where replicas may be waiting
// for one another by then.
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"

namespace headrace {
namespace {

class LoadedKernels : public test::FakeCuda {
 protected:
  // Those of `calls` since the log began, in their order.
  static std::vector<std::string> order_of(const std::vector<std::string>& calls) {
    std::vector<std::string> found;
    std::ranges::copy_if(test::fake_cuda::log(), std::back_inserter(found),
                         [&](const std::string& call) { return std::ranges::count(calls, call) > 0; });
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }
};

TEST_F(LoadedKernels, AreThoseOfTheInputBeforeAReplicaCanWait) {
  test::fake_cuda::start_log();
  DeviceGroup devices = open(2);
  EXPECT_THAT(order_of({"load image kernels", "load window kernels"}),
              ::testing::IsSupersetOf({"load image kernels", "load window kernels"}));
  const std::unique_ptr<Collective> collective = create_collective(devices);
  const std::vector<std::string> order =
      order_of({"load image kernels", "load window kernels", "load rendezvous kernels", "meet"});
  ASSERT_GE(order.size(), 4U);
  EXPECT_EQ(order[order.size() - 2], "load rendezvous kernels");
  EXPECT_EQ(order.back(), "meet") << "nothing is loaded once somebody waits";
}

TEST_F(LoadedKernels, AreThereOnEachGpu) {
  for (const char* device : {"cuda:0", "cuda:1"}) {
    test::fake_cuda::start_log();
    const DeviceGroup devices = open_devices(device);
    EXPECT_THAT(test::fake_cuda::log(), ::testing::IsSupersetOf({"load image kernels", "load window kernels"}))
        << device;
  }
}

}  // namespace
}  // namespace headrace
