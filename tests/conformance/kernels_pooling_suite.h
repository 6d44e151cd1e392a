// What the pooling kernels of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsPoolingSuite : public KernelsFixture<Target> {
 protected:
  // Even and odd images, windows that touch, overlap, leave gaps and reach into padding, more channels than a
  // vector.
  static inline const std::vector<PoolSizes> kSizes{{1, 2, 2, 1},
                                                    {2, 8, 8, 32},
                                                    {3, 7, 9, 5},
                                                    {2, 5, 4, 130},
                                                    {2, 3, 3, 64, {3, 3}},
                                                    {1, 9, 8, 17, {3, 2}},
                                                    {2, 9, 9, 70, {2, 3}},
                                                    {1, 4, 4, 6, {4, 1}},
                                                    {1, 2, 3, 4, {1, 1}},
                                                    {3, 11, 8, 16, {3, 3}},
                                                    {2, 7, 7, 24, {2, 2}},
                                                    {2, 8, 9, 8, {4, 4}},
                                                    {2, 8, 9, 64, {3, 2, 1}},
                                                    {1, 7, 7, 5, {3, 2, 1}},
                                                    {1, 1, 1, 3, {3, 2, 1}},
                                                    {2, 5, 6, 70, {3, 1, 1}},
                                                    {1, 4, 5, 16, {2, 2, 1}},
                                                    {1, 9, 7, 8, {5, 3, 2}},
                                                    {2, 4, 3, 8, {3, 3, 1}}};

  static Shape x_shape(const PoolSizes& s) { return shape(s.images, s.height, s.width, s.channels); }
  static Shape y_shape(const PoolSizes& s) { return shape(s.images, s.out_height(), s.out_width(), s.channels); }
  static std::string label(const PoolSizes& s) {
    return x_shape(s).to_string() + " window " + std::to_string(s.window()) + " stride " +
           std::to_string(s.stride()) + " padding " + std::to_string(s.pad());
  }

 private:
  static Shape shape(std::size_t n, std::size_t h, std::size_t w, std::size_t c) {
    return {static_cast<std::int64_t>(n), static_cast<std::int64_t>(h), static_cast<std::int64_t>(w),
            static_cast<std::int64_t>(c)};
  }
};
TYPED_TEST_SUITE_P(KernelsPoolingSuite);

TYPED_TEST_P(KernelsPoolingSuite, MaxPoolForward) {
  for (const PoolSizes& s : this->kSizes) {
    // Few distinct values: ties are common, and the first of them wins.
    auto values = random_floats(this->x_shape(s).elements(), 1);
    for (float& value : values) value = std::round(value * 3);
    const TensorView x = this->tensor(this->x_shape(s), values);
    const TensorView y = this->result(this->y_shape(s)), argmax = this->result(this->y_shape(s), DType::kU8);
    this->run(
        [&](Stream& stream) {
          this->kernels().max_pool_forward(stream, {x, y, argmax, s.options});
        },
        {y, argmax});
    const Pooled expected = max_pool_forward(s, reals(values));
    this->expect_close(y, expected.y, 0, this->label(s));
    EXPECT_EQ(this->template read<std::uint8_t>(argmax), expected.argmax) << this->label(s);
  }
}

// As in PyTorch: the last NaN of a window is its maximum.
TYPED_TEST_P(KernelsPoolingSuite, NaNIsTheMaximum) {
  for (const PoolSizes& s : this->kSizes) {
    const std::int64_t elements = this->x_shape(s).elements();
    for (const DType type : {DType::kF32, DType::kBF16}) {
      auto values = random_floats(elements, 1);
      for (std::int64_t i = 0; i < elements; i += 5) values[static_cast<std::size_t>(i)] = std::nanf("");
      const TensorView x = this->result(this->x_shape(s), type), y = this->result(this->y_shape(s), type);
      const TensorView argmax = this->result(this->y_shape(s), DType::kU8);
      this->kernels().convert(this->stream(), {this->tensor(this->x_shape(s), values), x});
      this->kernels().max_pool_forward(this->stream(), {x, y, argmax, s.options});
      // A number beyond all others in NaN's place wins where NaN must; of equal ones the last.
      Reals expected = this->read_reals(x);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(expected[i])) expected[i] = 100 + static_cast<double>(i);
      }
      const Pooled pooled = max_pool_forward(s, expected);
      EXPECT_EQ(this->template read<std::uint8_t>(argmax), pooled.argmax) << this->label(s);
      const Reals found = this->read_reals(y);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(std::isnan(found[i]), pooled.y[i] >= 100) << this->label(s) << " at " << i;
      }
    }
  }
}

TYPED_TEST_P(KernelsPoolingSuite, MaxPoolBackward) {
  for (const PoolSizes& s : this->kSizes) {
    const TensorView dy = this->random(this->y_shape(s), 2), dx = this->result(this->x_shape(s));
    const auto xs = reals(random_floats(this->x_shape(s).elements(), 3));
    const auto winners = max_pool_forward(s, xs).argmax;
    const TensorView argmax = this->tensor(this->y_shape(s), winners);
    this->run(
        [&](Stream& stream) {
          this->kernels().max_pool_backward(stream, {dy, argmax, dx, s.options});
        },
        {dx});
    this->expect_close(dx, max_pool_backward(s, this->read_reals(dy), winners), 3e-7, this->label(s));
  }
}

TYPED_TEST_P(KernelsPoolingSuite, MaxPoolGradientIsThatOfTheForwardPass) {
  const PoolSizes s{1, 5, 4, 3, {3, 1}};
  const TensorView x = this->random(this->x_shape(s), 4), dy = this->random(this->y_shape(s), 5);
  const TensorView y = this->result(this->y_shape(s)), argmax = this->result(this->y_shape(s), DType::kU8);
  const TensorView dx = this->result(this->x_shape(s));
  this->kernels().max_pool_forward(this->stream(), {x, y, argmax, s.options});
  this->kernels().max_pool_backward(this->stream(), {dy, argmax, dx, s.options});
  this->expect_close(dx,
                     differences([&](const Reals& at) { return max_pool_forward(s, at).y; }, this->read_reals(x),
                                 this->read_reals(dy)),
                     1e-6);
}

TYPED_TEST_P(KernelsPoolingSuite, GlobalAverage) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 7, 5, 33}, Shape{2, 32, 32, 64}, Shape{5, 3, 3, 130}}) {
    const TensorView x = this->random(shape, 6), dy = this->random({shape[0], shape[3]}, 7);
    const TensorView y = this->result({shape[0], shape[3]}), dx = this->result(shape);
    const auto average = [&](const Reals& at) {
      return global_average(at, static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1] * shape[2]),
                            static_cast<std::size_t>(shape[3]));
    };
    this->run([&](Stream& stream) { this->kernels().global_average_pool_forward(stream, {x, y}); }, {y});
    this->expect_close(y, average(this->read_reals(x)), 1e-6, shape.to_string());
    this->run([&](Stream& stream) { this->kernels().global_average_pool_backward(stream, {dy, dx}); }, {dx});
    // Linear: the gradient of an image's element is its channel's gradient over the number of pixels.
    Reals expected(static_cast<std::size_t>(shape.elements()));
    const Reals dys = this->read_reals(dy);
    const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]),
               channels = static_cast<std::size_t>(shape[3]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = dys[i / (pixels * channels) * channels + i % channels] / static_cast<double>(pixels);
    }
    this->expect_close(dx, expected, 2e-7, shape.to_string());
  }
}

TYPED_TEST_P(KernelsPoolingSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({1, 4, 4, 3}, 1), y = this->result({1, 2, 2, 3});
  const auto pool = [&](const TensorView& to, const TensorView& argmax, const PoolOptions& options) {
    this->kernels().max_pool_forward(this->stream(), {x, to, argmax, options});
  };
  const TensorView argmax = this->result({1, 2, 2, 3}, DType::kU8);
  EXPECT_NO_THROW(pool(y, argmax, {}));
  EXPECT_THROW(pool(y, argmax, {.window = 3, .stride = 2}), ConfigError);
  EXPECT_THROW(pool(y, y, {}), ConfigError);
  EXPECT_THROW(pool(y, argmax, {.window = 2, .stride = 0}), ConfigError);
  EXPECT_THROW(pool(y, argmax, {.window = 17, .stride = 1}), ConfigError);
  EXPECT_NO_THROW(pool(y, argmax, {.window = 3, .stride = 2, .pad = 1}));
  EXPECT_THROW(pool(y, argmax, {.window = 3, .stride = 2, .pad = 2}), ConfigError);
  EXPECT_THROW(pool(y, argmax, {.window = 3, .stride = 2, .pad = -1}), ConfigError);
  EXPECT_THROW(this->kernels().average_pool_forward(this->stream(), {x, y, {.window = 3, .stride = 2, .pad = 1}}),
               ConfigError);
  EXPECT_THROW(this->kernels().global_average_pool_forward(this->stream(), {x, y}), ConfigError);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsPoolingSuite, MaxPoolForward, NaNIsTheMaximum, MaxPoolBackward,
                            MaxPoolGradientIsThatOfTheForwardPass, GlobalAverage, WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test
