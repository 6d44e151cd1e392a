// What of the whitening initialisation a GPU's host does before the clock of a training starts, and what on it.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tools/recipes/whitening.h"

namespace headrace::tools {
namespace {

class WhiteningCalls : public test::FakeCuda {
 protected:
  static std::int64_t count(const std::string& call) { return std::ranges::count(test::fake_cuda::log(), call); }
};

TEST_F(WhiteningCalls, UploadOnceFromPinnedMemoryAndWaitOnce) {
  constexpr std::int64_t kImages = 1200, kChunks = 3, kElements = 6 * 6 * 3;
  ImageBlock images{.shape = {kImages, 6, 6, 3}, .values = std::vector<float>(kImages * kElements)};
  for (std::size_t i = 0; i < images.values.size(); ++i)
    images.values[i] = static_cast<float>(i * 7919 % 1000) / 1000;
  DeviceGroup devices = open();
  ASSERT_NE(devices[0].kernels(), nullptr);
  test::fake_cuda::start_log();
  Whitening whitening(images, devices[0]);
  EXPECT_EQ(count("cudaMemcpyAsync"), kChunks + 1) << "the images and identity filters";
  EXPECT_EQ(count("pageable copy"), 1) << "these alone";
  test::fake_cuda::start_log();
  const std::vector<float> filters = whitening.filters();
  EXPECT_EQ(count("cudaMemcpyAsync"), kChunks) << "sums back";
  EXPECT_EQ(count("pageable copy"), 0);
  EXPECT_EQ(count("cudaStreamSynchronize"), 1);
  EXPECT_EQ(count("cudaMalloc") + count("cudaHostAlloc") + count("cudaMallocFromPoolAsync"), 0);
  CpuDevice host("cpu:0");  // with one thread, as the fake's products
  EXPECT_EQ(filters, whitening_filters(images, host));
}

}  // namespace
}  // namespace headrace::tools
