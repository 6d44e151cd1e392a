// What the suites of Kernels share: tensors on the device, repeatable runs, comparison with an oracle.
// `Target` says how a backend's device is opened:
//   static std::string absent();     // why it cannot be tested here; empty when it can
//   static DeviceGroup open();       // one device with kernels
//   static double slack();           // factor on the tolerances, 1 for the CPU
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

template <typename Target>
class KernelsFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Target::absent(); !why.empty()) GTEST_SKIP() << why;
    devices_.emplace(Target::open());
    stream_ = device().create_stream();
  }

  Device& device() { return (*devices_)[0]; }
  Stream& stream() { return *stream_; }
  Kernels& kernels() { return *device().kernels(); }

  // Memory of the device that lives as long as the test, with these contents.
  template <typename T>
  TensorView tensor(const Shape& shape, const std::vector<T>& values) {
    EXPECT_EQ(shape.elements(), static_cast<std::int64_t>(values.size()));
    const TensorView view = buffer(values.size() * sizeof(T)).view(shape, dtype_of<T>());
    write(view, values);
    return view;
  }
  TensorView random(const Shape& shape, std::uint64_t seed) {
    return tensor(shape, random_floats(shape.elements(), seed));
  }
  // Uninitialised: NaN, or 255.
  TensorView result(const Shape& shape, DType dtype = DType::kF32) {
    const TensorView view = buffer(static_cast<std::size_t>(shape.elements()) * size_of(dtype)).view(shape, dtype);
    poison(view);
    return view;
  }
  // One structure on the device.
  template <typename T>
  T* constant(const T& value) {
    std::byte* data = buffer(sizeof(T)).data();
    stream().copy(data, &value, sizeof(T));
    stream().synchronize();
    return reinterpret_cast<T*>(data);
  }
  StepScalars* scalars(const StepScalars& values) { return constant(values); }

  template <typename T>
  std::vector<T> read(const TensorView& view) {
    std::vector<T> values(static_cast<std::size_t>(view.elements()));
    stream().copy(values.data(), view.data, view.bytes());
    stream().synchronize();
    return values;
  }
  // Of f32 or bf16.
  Reals read_reals(const TensorView& view) {
    if (view.dtype == DType::kF32) return reals(read<float>(view));
    Reals values;
    for (const BFloat16 value : read<BFloat16>(view)) values.push_back(static_cast<double>(widened(value)));
    return values;
  }
  // Of bf16.
  std::vector<std::uint16_t> bits(const TensorView& view) {
    std::vector<std::uint16_t> values;
    for (const BFloat16 value : read<BFloat16>(view)) values.push_back(value.bits);
    return values;
  }
  template <typename T>
  void write(const TensorView& view, const std::vector<T>& values) {
    stream().copy(view.data, values.data(), view.bytes());
    stream().synchronize();
  }
  void poison(const TensorView& view) {
    stream().fill(view.data, 0xFF, view.bytes());
    stream().synchronize();
  }

  // Submits `work` and waits. Then does so again, and again as captured work, from the same contents of
  // `outputs`: the bits must be the same each time.
  void run(const std::function<void(Stream&)>& work, const std::vector<TensorView>& outputs) {
    const Snapshot before = snapshot(outputs);
    work(stream());
    const Snapshot first = snapshot(outputs);
    restore(outputs, before);
    work(stream());
    EXPECT_EQ(snapshot(outputs), first) << "the second run differs";
    stream().begin_capture();
    work(stream());
    const auto captured = stream().end_capture();
    for (int launch = 0; launch < 2; ++launch) {
      restore(outputs, before);
      stream().launch(*captured);
      EXPECT_EQ(snapshot(outputs), first) << "captured launch " << launch << " differs";
    }
  }

  // Every element within `tolerance` of the expected, relative to the largest expected magnitude.
  void expect_close(const TensorView& actual, const Reals& expected, double tolerance,
                    const std::string& what = {}) {
    const Reals values = read_reals(actual);
    ASSERT_EQ(values.size(), expected.size()) << what;
    double scale = 0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    const double allowed = tolerance * Target::slack() * std::max(scale, 1e-3);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], allowed) << what << " at " << i << " of " << values.size();
    }
  }

 private:
  using Snapshot = std::vector<std::vector<unsigned char>>;

  Buffer& buffer(std::size_t bytes) { return buffers_.emplace_back(device().allocate(bytes)); }

  Snapshot snapshot(const std::vector<TensorView>& views) {
    Snapshot bytes;
    for (const TensorView& view : views) {
      bytes.emplace_back(view.bytes());
      stream().copy(bytes.back().data(), view.data, view.bytes());
    }
    stream().synchronize();
    return bytes;
  }
  void restore(const std::vector<TensorView>& views, const Snapshot& bytes) {
    for (std::size_t i = 0; i < views.size(); ++i) stream().copy(views[i].data, bytes[i].data(), bytes[i].size());
    stream().synchronize();
  }

  // Streams go before the memory they refer to, memory before its device.
  std::optional<DeviceGroup> devices_;
  std::deque<Buffer> buffers_;
  std::unique_ptr<Stream> stream_;
};

// Tensors in bf16 for the suites of Kernels, and what a result in bf16 may differ by.

template <typename Target>
class KernelsHalfFixture : public KernelsFixture<Target> {
 protected:
  // Of the largest, where the slope of a GELU or SiLU is as exact as bf16 needs it (2e-5 of itself and of what
  // cancels in it: devices/cuda/math/activation_math.h).
  static constexpr double kQuick = 2e-5;

  // Widths that fill packs of eight, that do not, and more than one block.
  static inline const std::vector<Shape> kShapes{{1}, {3, 5, 5, 3}, {7, 8}, {33, 64}, {2, 70001}};

  TensorView half(const Shape& shape, const std::vector<float>& values) {
    std::vector<BFloat16> rounded;
    for (const float value : values) rounded.push_back(nearest_bf16(value));
    return this->tensor(shape, rounded);
  }
  TensorView half(const Shape& shape, std::uint64_t seed, float magnitude = 1) {
    auto values = random_floats(shape.elements(), seed);
    for (float& value : values) value *= magnitude;
    return half(shape, values);
  }
  TensorView half_result(const Shape& shape) { return this->result(shape, DType::kBF16); }

  // Each element within one rounding to bf16 (2^-9 of itself) of the expected, and what f32 arithmetic of this
  // relative error of the largest adds, which may also tip the rounding over to the next number.
  void expect_rounded(const TensorView& actual, const Reals& expected, double arithmetic,
                      const std::string& what) {
    const Reals values = this->read_reals(actual);
    ASSERT_EQ(values.size(), expected.size()) << what;
    double scale = 0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double allowed = std::abs(expected[i]) / 256 + arithmetic * Target::slack() * std::max(scale, 1e-3);
      ASSERT_NEAR(values[i], expected[i], allowed) << what << " at " << i;
    }
  }
};

// What the suites of batch normalisation share.

template <typename Target>
class KernelsNormFixture : public KernelsFixture<Target> {
 protected:
  static constexpr float kEpsilon = 1e-3F, kMomentum = 0.9F;

  // The same figures at each call.
  kernel::BatchNorm norm(std::int64_t channels, Activation activation = Activation::kNone) {
    auto variances = random_floats(channels, 11);
    for (float& value : variances) value = value + 1.5F;
    return {.gamma = this->random({channels}, 12),
            .beta = this->random({channels}, 13),
            .running_mean = this->random({channels}, 14),
            .running_var = this->tensor({channels}, variances),
            .saved_mean = this->result({channels}),
            .saved_inv_std = this->result({channels}),
            .epsilon = kEpsilon,
            .momentum = kMomentum,
            .activation = activation};
  }
};

}  // namespace headrace::test
