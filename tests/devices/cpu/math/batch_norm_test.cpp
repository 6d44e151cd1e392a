// What the CPU's batch normalisation promises beyond the suite of Kernels: an activation behind it changes no bit.
#include <gtest/gtest.h>

#include <cstring>

#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/registry.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {
namespace {

struct Vectors {
  std::vector<float> values;
  TensorView view() { return {values.data(), Shape{static_cast<std::int64_t>(values.size())}, DType::kF32}; }
};

// One batch forward and backward: everything that the calls write, in one array.
struct Results {
  static constexpr std::int64_t kExamples = 5, kPixels = 77, kChannels = 70, kReal = 4;
  static constexpr std::int64_t kCount = kExamples * kPixels * kChannels;

  std::vector<float> x = random_floats(kCount, 1), y = std::vector<float>(kCount), dx = random_floats(kCount, 2);
  Vectors gamma{random_floats(kChannels, 3)}, beta{random_floats(kChannels, 4)};
  Vectors running_mean{random_floats(kChannels, 5)}, running_var{std::vector<float>(kChannels, 1)};
  Vectors saved_mean{std::vector<float>(kChannels)}, saved_inv_std{std::vector<float>(kChannels)};
  Vectors dgamma{std::vector<float>(kChannels)}, dbeta{std::vector<float>(kChannels)};

  static TensorView batch(std::vector<float>& values) {
    return {values.data(), Shape{kExamples, kPixels, kChannels}, DType::kF32};
  }
  kernel::BatchNorm norm(Activation activation) {
    return {.gamma = gamma.view(),
            .beta = beta.view(),
            .running_mean = running_mean.view(),
            .running_var = running_var.view(),
            .saved_mean = saved_mean.view(),
            .saved_inv_std = saved_inv_std.view(),
            .activation = activation};
  }
};

void fused(Kernels& kernels, Stream& stream, Activation activation, Results& r) {
  const StepScalars scalars{.rows = Results::kReal};
  const kernel::BatchNorm norm = r.norm(activation);
  const TensorView x = Results::batch(r.x), dx = Results::batch(r.dx);
  kernels.batch_norm_train(stream, {x, Results::batch(r.y), norm, &scalars});
  kernels.batch_norm_backward(stream, {x, dx, r.dgamma.view(), r.dbeta.view(), dx, norm, &scalars});
  stream.synchronize();
}

void apart(Kernels& kernels, Stream& stream, Activation activation, Results& r) {
  const StepScalars scalars{.rows = Results::kReal};
  const kernel::BatchNorm norm = r.norm(Activation::kNone);
  const TensorView x = Results::batch(r.x), y = Results::batch(r.y), dx = Results::batch(r.dx);
  kernels.batch_norm_train(stream, {x, y, norm, &scalars});
  kernels.activation_backward(stream, {activation, y, dx, dx});
  kernels.activation_forward(stream, {activation, y, y});
  kernels.batch_norm_backward(stream, {x, dx, r.dgamma.view(), r.dbeta.view(), dx, norm, &scalars});
  stream.synchronize();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(CpuBatchNorm, FusedActivationsHaveTheBitsOfSeparateOnes) {
  const DeviceGroup devices = open_devices("cpu:1");
  const auto stream = devices[0].create_stream();
  Kernels& kernels = *devices[0].kernels();
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
    Results one, two;
    fused(kernels, *stream, activation, one);
    apart(kernels, *stream, activation, two);
    EXPECT_TRUE(same_bits(one.y, two.y));
    EXPECT_TRUE(same_bits(one.dx, two.dx));
    EXPECT_TRUE(same_bits(one.dgamma.values, two.dgamma.values));
    EXPECT_TRUE(same_bits(one.dbeta.values, two.dbeta.values));
    EXPECT_TRUE(same_bits(one.running_mean.values, two.running_mean.values));
    EXPECT_TRUE(same_bits(one.saved_inv_std.values, two.saved_inv_std.values));
  }
}

}  // namespace
}  // namespace headrace::test
