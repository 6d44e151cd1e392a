// cuDNN makes plans for a GPU that is only described, so that this runs where there is none. Kernels that it
// compiles at run time need the driver and are left out here: what is tested are the ways without them.
#include "headrace/devices/cuda/math/cudnn_plan.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

namespace headrace::cuda {
namespace {

struct Gpu {
  const char* name;
  int compute_capability, multiprocessors, shared_memory, l2_bytes;
};
constexpr Gpu kA100{"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040};
constexpr Gpu kH100{"NVIDIA H100 80GB HBM3", 900, 132, 232448, 52428800};

// In the words of cuDNN 9; empty where this version wants others.
std::optional<CudnnDescriptor> described(const Gpu& gpu) {
  const std::string json =
      std::string("{\"deviceName\":\"") + gpu.name + "\",\"deviceVer\":" + std::to_string(gpu.compute_capability) +
      ",\"multiProcessorCount\":" + std::to_string(gpu.multiprocessors) +
      ",\"maxSharedMemoryPerBlockOptin\":" + std::to_string(gpu.shared_memory) +
      ",\"l2CacheSize\":" + std::to_string(gpu.l2_bytes) +
      R"(,"cudaDeviceId":0,"driverVer":13000,"isTccDriver":0,"maxCtasPerSM":32,"maxRegistersPerSM":65536,)"
      R"("maxSharedMemoryPerBlock":49152,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"memClockRateKHz":1593000,)"
      R"("pciDeviceId":0,"regsPerBlock":65536,"reservedSharedMemoryPerBlock":1024,"smClockRateKHz":1410000,)"
      R"("supportCoopLaunch":1,"totalGlobalMem":85899345920,"warpSize":32,"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64]})";
  try {
    CudnnDescriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()),
               json.data());
    device.finalize();
    return device;
  } catch (const CudnnRefusal&) {
    return std::nullopt;
  }
}

struct PlanCase {
  Shape x, weights, y;
  ConvOptions options;
};

constexpr ConvOptions kDilated{.dilation = 2, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2};
constexpr ConvOptions kDilatedAndStrided{
    .stride = 2, .dilation = 2, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2};
constexpr ConvOptions kUneven{.stride = {2, 1}, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
constexpr ConvOptions kSame{.stride = 1, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};

// The layers of the recipes, a strided one that is padded on one side, one with odd channels,
// dilated ones, some of several groups and some of uneven windows.
const PlanCase kCases[] = {
    {{2000, 32, 32, 3}, {24, 2, 2, 3}, {2000, 31, 31, 24}, {}},
    {{2000, 31, 31, 24}, {64, 3, 3, 24}, {2000, 31, 31, 64}, kSame},
    {{2000, 15, 15, 64}, {256, 3, 3, 64}, {2000, 15, 15, 256}, kSame},
    {{2000, 7, 7, 256}, {256, 3, 3, 256}, {2000, 7, 7, 256}, kSame},
    {{64, 28, 28, 1}, {32, 3, 3, 1}, {64, 26, 26, 32}, {}},
    {{64, 56, 56, 64}, {128, 3, 3, 64}, {64, 28, 28, 128}, {.stride = 2, .pad_bottom = 1, .pad_right = 1}},
    {{3, 5, 7, 3}, {5, 3, 3, 3}, {3, 5, 7, 5}, kSame},
    {{64, 28, 28, 64}, {64, 3, 3, 64}, {64, 28, 28, 64}, kDilated},
    {{3, 9, 8, 3}, {5, 3, 3, 3}, {3, 9, 8, 5}, kDilated},
    {{64, 28, 28, 64}, {64, 3, 3, 64}, {64, 14, 14, 64}, kDilatedAndStrided},
    {{64, 28, 28, 128}, {128, 3, 3, 4}, {64, 28, 28, 128}, kSame},
    {{64, 28, 28, 128}, {128, 3, 3, 1}, {64, 28, 28, 128}, kSame},
    {{3, 9, 8, 15}, {10, 3, 3, 3}, {3, 9, 8, 10}, kSame},
    {{64, 28, 28, 64}, {64, 1, 7, 64}, {64, 28, 28, 64}, {.pad_left = 3, .pad_right = 3}},
    {{64, 28, 28, 64}, {64, 3, 3, 64}, {64, 14, 28, 64}, kUneven},
};

class CudnnPlans : public ::testing::TestWithParam<Gpu> {
 protected:
  void SetUp() override {
    device_ = described(GetParam());
    if (!device_) GTEST_SKIP() << "this cuDNN does not know the description of a GPU";
  }

  // The first way that has a plan, in words; "none" where there is none.
  std::string way(ConvolutionPass pass, const PlanCase& c, Precision precision, DType wanted,
                  ActivationStorage storage, bool bias = false) {
    ConvOptions options = c.options;
    options.precision = precision;
    ConvolutionProblem problem = convolution_problem(pass, c.x, c.weights, c.y, options);
    problem.bias = bias;
    for (const ConvolutionProblem& each : ways_to_compute(problem, wanted, storage)) {
      const auto plans = make_plans(each, {.handle = nullptr, .properties = &*device_}, Determinism::kDefault, {});
      if (!plans.empty() && plans.front().workspace_bytes >= 0) return to_string(each);
    }
    return "none: " + to_string(problem);
  }

  std::optional<CudnnDescriptor> device_;
};

constexpr ConvolutionPass kPasses[] = {ConvolutionPass::kForward, ConvolutionPass::kBackwardData,
                                       ConvolutionPass::kBackwardWeights};

TEST_P(CudnnPlans, F32HasRepeatableKernelsWithoutTensorCores) {
  for (const PlanCase& c : kCases) {
    for (const ConvolutionPass pass : kPasses) {
      EXPECT_NE(way(pass, c, Precision::kF32, DType::kF32, ActivationStorage::kF32).substr(0, 4), "none")
          << to_string(convolution_problem(pass, c.x, c.weights, c.y, c.options));
    }
    EXPECT_NE(way(ConvolutionPass::kForward, c, Precision::kF32, DType::kF32, ActivationStorage::kF32,
                  /*bias=*/true)
                  .substr(0, 4),
              "none");
  }
}

TEST_P(CudnnPlans, Bf16ActivationsHaveBf16Kernels) {
  for (const PlanCase& c : kCases) {
    for (const ConvolutionPass pass : kPasses) {
      const DType wanted = pass == ConvolutionPass::kBackwardWeights ? DType::kF32 : DType::kBF16;
      const std::string found = way(pass, c, Precision::kBF16, wanted, ActivationStorage::kBF16);
      EXPECT_NE(found.find("bfloat16 to bfloat16"), std::string::npos) << found;
    }
  }
}

TEST_P(CudnnPlans, Bf16PrecisionOnF32ActivationsHasAWay) {
  for (const PlanCase& c : kCases) {
    for (const ConvolutionPass pass : kPasses) {
      const std::string found = way(pass, c, Precision::kBF16, DType::kF32, ActivationStorage::kF32);
      EXPECT_NE(found.substr(0, 4), "none") << found;
      EXPECT_NE(found.find("to float32"), std::string::npos) << found;
    }
  }
}

TEST_P(CudnnPlans, SeveralPlansBeginWithThePreferredOneAndKeepTheirLimits) {
  const CudnnTarget target{.handle = nullptr, .properties = &*device_};
  for (const PlanCase& c : kCases) {
    ConvOptions options = c.options;
    options.precision = Precision::kBF16;
    ConvolutionProblem problem = convolution_problem(ConvolutionPass::kForward, c.x, c.weights, c.y, options);
    problem.operands = problem.result = DType::kBF16;
    const auto first = make_plans(problem, target, Determinism::kTuned, {});
    ASSERT_EQ(first.size(), 1U) << to_string(problem);
    const auto plans = make_plans(problem, target, Determinism::kTuned, {.plans = 4});
    ASSERT_FALSE(plans.empty());
    EXPECT_LE(plans.size(), 4U);
    EXPECT_EQ(plans.front().workspace_bytes, first.front().workspace_bytes);
    const auto small = make_plans(problem, target, Determinism::kTuned, {.plans = 4, .workspace_bytes = 0});
    ASSERT_FALSE(small.empty()) << "one that needs more is better than none";
    for (const CudnnPlan& plan : small) EXPECT_TRUE(plan.workspace_bytes == 0 || small.size() == 1);
  }
}

TEST_P(CudnnPlans, NamesTellPlansApartAndFindThemAgain) {
  const CudnnTarget target{.handle = nullptr, .properties = &*device_};
  for (const PlanCase& c : kCases) {
    ConvOptions options = c.options;
    options.precision = Precision::kBF16;
    ConvolutionProblem problem =
        convolution_problem(ConvolutionPass::kBackwardWeights, c.x, c.weights, c.y, options);
    problem.operands = problem.result = DType::kBF16;
    SCOPED_TRACE(to_string(problem));
    const auto plans = make_plans(problem, target, Determinism::kTuned, {.plans = 4});
    const auto again = make_plans(problem, target, Determinism::kTuned, {.plans = 4});
    ASSERT_EQ(plans.size(), again.size());
    std::set<std::string> names;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      EXPECT_EQ(plans[i].name.substr(0, 3), "eng");
      EXPECT_EQ(plans[i].name, again[i].name) << "from one time to the next";
      EXPECT_TRUE(names.insert(plans[i].name).second) << plans[i].name;
      const auto found = make_plan(problem, target, Determinism::kTuned, plans[i].name);
      ASSERT_TRUE(found) << plans[i].name;
      EXPECT_EQ(found->name, plans[i].name);
      EXPECT_EQ(found->workspace_bytes, plans[i].workspace_bytes);
    }
    EXPECT_FALSE(make_plan(problem, target, Determinism::kTuned, "eng999_k1=1"));
  }
}

INSTANTIATE_TEST_SUITE_P(Described, CudnnPlans, ::testing::Values(kA100, kH100), [](const auto& gpu) {
  return "sm_" + std::to_string(gpu.param.compute_capability / 10);
});

}  // namespace
}  // namespace headrace::cuda
