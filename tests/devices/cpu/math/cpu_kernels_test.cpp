// What is particular to the CPU's kernels: bf16 products made by oneDNN itself, several threads, wrong streams.
#include "headrace/devices/cpu/math/cpu_kernels.h"

#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {
namespace {

TensorView view(std::vector<float>& values, const Shape& shape) { return {values.data(), shape, DType::kF32}; }

void expect_close(const std::vector<float>& actual, const Reals& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(static_cast<double>(actual[i]), expected[i], tolerance) << i;
}

// oneDNN emulates bf16 on every AVX-512 processor, so the path of processors with fast bf16 is checked without
// one.
TEST(CpuKernels, NativeBf16MeansTheSameAsRounding) {
  if (!has_avx512()) GTEST_SKIP() << "oneDNN makes bf16 products from AVX-512 on";
  CpuDevice device("cpu:0");
  const auto stream = device.create_stream();
  const auto native = create_cpu_kernels("cpu:0", 1, Bf16Products::kNative);
  EXPECT_TRUE(native->prefers_bf16());
  EXPECT_FALSE(create_cpu_kernels("cpu:0", 1, Bf16Products::kRounded)->prefers_bf16());

  for (const int stride : {1, 2}) {
    const ConvSizes s{2,
                      8,
                      7,
                      16,
                      32,
                      3,
                      3,
                      {.stride = stride,
                       .pad_top = 1,
                       .pad_left = 1,
                       .pad_bottom = 1,
                       .pad_right = 1,
                       .precision = Precision::kBF16}};
    auto x = random_floats(s.x_count(), 1), weights = random_floats(s.weights_count(), 2),
         dy = random_floats(s.y_count(), 3);
    std::vector<float> bias(32, 0.5F), y(dy.size()), dx(x.size()), dweights(weights.size()), dbias(32);
    const Shape of_x{2, 8, 7, 16}, of_weights{32, 3, 3, 16}, of_y{2, s.out_height(), s.out_width(), 32};
    native->conv_forward(*stream, {view(x, of_x), view(weights, of_weights), view(bias, {32}), view(y, of_y),
                                   s.options, Activation::kRelu});
    native->conv_backward_data(*stream, {view(dy, of_y), view(weights, of_weights), view(dx, of_x), s.options});
    native->conv_backward_weights(
        *stream, {view(x, of_x), view(dy, of_y), view(dweights, of_weights), view(dbias, {32}), s.options});
    stream->synchronize();
    const auto rounded = [](const std::vector<float>& values) {
      return in_precision(Precision::kBF16, reals(values));
    };
    expect_close(y, activated(Activation::kRelu, conv_forward(s, rounded(x), rounded(weights), reals(bias))),
                 1e-4);
    expect_close(dx, conv_backward_data(s, rounded(dy), rounded(weights)), 1e-4);
    expect_close(dweights, conv_backward_weights(s, rounded(x), rounded(dy)), 1e-4);
    expect_close(dbias, column_sums(reals(dy), 32), 0.1);
  }
}

TEST(CpuKernels, NativeBf16DenseMeansTheSameAsRounding) {
  if (!has_avx512()) GTEST_SKIP() << "oneDNN makes bf16 products from AVX-512 on";
  CpuDevice device("cpu:0");
  const auto stream = device.create_stream();
  const auto native = create_cpu_kernels("cpu:0", 1, Bf16Products::kNative);
  const DenseSizes s{7, 40, 33};
  auto x = random_floats(7 * 40, 1), weights = random_floats(33 * 40, 2), dy = random_floats(7 * 33, 3);
  std::vector<float> y(dy.size()), dx(x.size()), dweights(weights.size());
  native->dense_forward(
      *stream,
      {view(x, {7, 40}), view(weights, {33, 40}), {}, view(y, {7, 33}), Activation::kGelu, Precision::kBF16});
  native->dense_backward_data(*stream,
                              {view(dy, {7, 33}), view(weights, {33, 40}), view(dx, {7, 40}), Precision::kBF16});
  native->dense_backward_weights(
      *stream, {view(x, {7, 40}), view(dy, {7, 33}), view(dweights, {33, 40}), {}, Precision::kBF16});
  stream->synchronize();
  const auto rounded = [](const std::vector<float>& values) {
    return in_precision(Precision::kBF16, reals(values));
  };
  expect_close(y, activated(Activation::kGelu, dense_forward(s, rounded(x), rounded(weights), {})), 1e-5);
  expect_close(dx, dense_backward_data(s, rounded(dy), rounded(weights)), 1e-5);
  expect_close(dweights, dense_backward_weights(s, rounded(x), rounded(dy)), 1e-5);
}

// Our own loops give the same bits with any number of threads; the sizes are past where they split.
TEST(CpuKernels, OwnLoopsDoNotDependOnTheThreads) {
  constexpr std::int64_t kImages = 64, kSide = 16, kChannels = 96;
  const Shape shape{kImages, kSide, kSide, kChannels}, pooled{kImages, kSide / 2, kSide / 2, kChannels};
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    CpuDevice device("cpu:0", threads);
    const auto stream = device.create_stream();
    Kernels& kernels = *device.kernels();
    auto x = random_floats(shape.elements(), 1), vectors = random_floats(5 * kChannels, 2);
    std::vector<float> y(x.size()), small(static_cast<std::size_t>(pooled.elements())),
        average(kImages * kChannels);
    std::vector<std::uint8_t> argmax(small.size());
    const auto vector = [&](int index) {
      return TensorView{vectors.data() + index * kChannels, {kChannels}, DType::kF32};
    };
    const kernel::BatchNorm norm{.gamma = {},
                                 .beta = vector(0),
                                 .running_mean = vector(1),
                                 .running_var = vector(2),
                                 .saved_mean = vector(3),
                                 .saved_inv_std = vector(4)};
    const StepScalars scalars{.rows = kImages - 1, .learning_rates = {0.1F}, .step = 9};
    kernels.batch_norm_train(*stream, {view(x, shape), view(y, shape), norm, &scalars});
    kernels.batch_norm_backward(*stream,
                                {view(x, shape), view(y, shape), {}, vector(0), view(y, shape), norm, &scalars});
    kernels.activation_forward(*stream, {Activation::kGelu, view(y, shape), view(y, shape)});
    kernels.dropout(*stream, {view(y, shape), view(y, shape), 0.2F, 3, 4, &scalars});
    kernels.max_pool_forward(*stream,
                             {view(y, shape), view(small, pooled), {argmax.data(), pooled, DType::kU8}, {}});
    kernels.max_pool_backward(*stream,
                              {view(small, pooled), {argmax.data(), pooled, DType::kU8}, view(x, shape), {}});
    kernels.global_average_pool_forward(*stream, {view(x, shape), view(average, {kImages, kChannels})});
    kernels.sgd(*stream, {view(y, shape), view(x, shape), {}, {}, &scalars});
    stream->synchronize();
    for (const auto* part : {&vectors, &y, &small, &x, &average}) results.push_back(*part);
  }
  for (std::size_t i = 0; i < results.size() / 2; ++i) EXPECT_EQ(results[i], results[i + results.size() / 2]) << i;
}

TEST(CpuKernels, MuonDoesNotDependOnTheThreads) {
  for (const Shape& shape : {Shape{64, 216}, Shape{256, 2304}, Shape{300, 40}}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      CpuDevice device("cpu:0", threads);
      const auto stream = device.create_stream();
      auto parameters = random_floats(shape.elements(), 1), gradients = random_floats(shape.elements(), 2),
           velocity = random_floats(shape.elements(), 3);
      const StepScalars scalars{.learning_rates = {0.24F}};
      const MuonMatrix matrix{view(parameters, shape), view(gradients, shape), view(velocity, shape)};
      device.kernels()->muon(*stream, {std::vector{matrix}, {}, &scalars});
      stream->synchronize();
      results.push_back(parameters);
    }
    EXPECT_EQ(results[0], results[1]) << shape.to_string();
    EXPECT_EQ(results[0], results[2]) << shape.to_string();
  }
}

// Long sums, which oneDNN would divide among its threads, and fewer matrices than threads.
TEST(CpuKernels, BatchedProductsDoNotDependOnTheThreads) {
  const Shape shape{1, 2, 40, 2000}, square{1, 2, 40, 40};
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      CpuDevice device("cpu:0", threads);
      const auto stream = device.create_stream();
      auto a = random_floats(shape.elements(), 1), b = random_floats(shape.elements(), 2);
      std::vector<float> result(static_cast<std::size_t>(square.elements()));
      device.kernels()->batched_matmul(
          *stream, {{view(a, shape)}, {view(b, shape), false, true}, {view(result, square)}, 0.1F, precision});
      stream->synchronize();
      results.push_back(result);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

// A stream of somebody else's.
class ForeignStream final : public Stream {
 public:
  explicit ForeignStream(Device& device) : device_(device) {}
  Device& device() const noexcept override { return device_; }
  void synchronize() override {}
  void record(Event&) override {}
  void wait(const Event&) override {}
  void follow(Stream&) override {}
  Buffer allocate(std::size_t) override { return {}; }
  void release(void*, std::size_t, MemoryPlace) noexcept override {}
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, unsigned char, std::size_t) override {}
  void call(std::function<void()>) override {}
  void begin_capture() override {}
  std::unique_ptr<CapturedWork> end_capture() override { return nullptr; }
  void launch(CapturedWork&) override {}

 private:
  Device& device_;
};

TEST(CpuKernels, AnotherDevicesStreamIsRefused) {
  CpuDevice device("cpu:0");
  ForeignStream foreign(device);
  std::vector<float> x(4);
  EXPECT_THROW(device.kernels()->accumulate(foreign, {view(x, {4}), view(x, {4})}), DeviceError);
}

}  // namespace
}  // namespace headrace::test
