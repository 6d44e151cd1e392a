// In which order gradients and running statistics of several GPUs are added: NCCL's, which is fast, or with
// virtual shards the one that does not depend on the GPUs.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace {
namespace {

using test::fake_cuda::Calls;
using test::fake_cuda::calls_here;

class SumOrder : public test::FakeCuda {
 protected:
  // What a training on two GPUs asks of NCCL: sums, in its order, and messages, for sums in the fixed one.
  static std::pair<std::uint64_t, std::uint64_t> sums_of(const StepOptions& step) {
    const auto counted = [](const char* name) {
      const Calls calls = calls_here();
      const auto found = calls.find(name);
      return found == calls.end() ? 0 : found->second;
    };
    const std::pair before(counted("ncclAllReduce"), counted("ncclSend"));
    DeviceGroup devices = open_devices("cuda:0,1");
    Strategy strategy(devices, {.announce = false});
    Model model = test::compiled(strategy, test::norm_cnn);
    model.fit(test::blobs(32, {6, 6, 2}).batch({.global_batch = 8}),
              {.verbose = 0, .step = step, .stop_after_steps = 2});
    return {counted("ncclAllReduce") - before.first, counted("ncclSend") - before.second};
  }
};

// Recorded once on each replica: of gradients, and of running statistics. A sum in the fixed order is two rounds
// of messages to both GPUs, and before the first one all are connected.
TEST_F(SumOrder, IsTheTreesWithVirtualShardsAlone) {
  constexpr std::uint64_t kConnecting = 2 * 2, kMessages = kConnecting + 4 * 2 * 2;
  EXPECT_EQ(sums_of({.virtual_shards = 4}), std::pair(std::uint64_t{0}, kMessages));
  EXPECT_EQ(sums_of({.accumulate = 2, .virtual_shards = 2}), std::pair(std::uint64_t{0}, kMessages));
  EXPECT_EQ(sums_of({}), std::pair(std::uint64_t{4}, std::uint64_t{0}));
}

}  // namespace
}  // namespace headrace
