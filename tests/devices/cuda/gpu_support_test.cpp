#include "headrace/devices/cuda/gpu_support.h"

#include <gmock/gmock.h>

namespace headrace::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const BuiltArchitectures kUsual = parse_architectures("80-real,90");

TEST(GpuSupport, AListIsCodeAndPtx) {
  const BuiltArchitectures built = parse_architectures("80-real,90,103-virtual,120-real");
  EXPECT_THAT(built.code, ElementsAre(ComputeCapability{8, 0}, ComputeCapability{9, 0}, ComputeCapability{12, 0}));
  EXPECT_THAT(built.ptx, ElementsAre(ComputeCapability{9, 0}, ComputeCapability{10, 3}));
  EXPECT_THAT(parse_architectures("").code, IsEmpty());
}

TEST(GpuSupport, CodeRunsWithinAGeneration) {
  for (const ComputeCapability gpu : {ComputeCapability{8, 0}, {8, 6}, {8, 9}, {9, 0}}) {
    EXPECT_EQ(support_of(gpu, kUsual), Support::kCode) << gpu.major << gpu.minor;
  }
  EXPECT_EQ(support_of({8, 0}, parse_architectures("86-real")), Support::kNone) << "not on what is older";
}

TEST(GpuSupport, NewerGenerationsCompilePtx) {
  for (const ComputeCapability gpu : {ComputeCapability{10, 0}, {10, 3}, {11, 0}, {12, 0}, {13, 0}}) {
    EXPECT_EQ(support_of(gpu, kUsual), Support::kPtx) << gpu.major << gpu.minor;
  }
  EXPECT_EQ(support_of({12, 0}, parse_architectures("80-real,90-real")), Support::kNone);
}

TEST(GpuSupport, OlderGpusHaveNoneAndAreToldWhy) {
  for (const ComputeCapability gpu : {ComputeCapability{6, 1}, {7, 0}, {7, 5}}) {
    EXPECT_EQ(support_of(gpu, kUsual), Support::kNone);
  }
  EXPECT_EQ(
      why_unsupported({7, 0}, kUsual),
      "its compute capability is 7.0, and this build's kernels (8.0, 9.0, and PTX of 9.0) need 8.0 or newer: "
      "use a newer GPU, or `cpu`");
  EXPECT_EQ(why_unsupported({12, 0}, parse_architectures("80-real")),
            "this build's kernels (8.0) are not for its compute capability 12.0: build with "
            "-DCMAKE_CUDA_ARCHITECTURES=120, or use `cpu`");
}

}  // namespace
}  // namespace headrace::cuda
