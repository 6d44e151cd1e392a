// What shift_images() must give on every device.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"

namespace headrace::test {

template <typename Target>
class KernelsViewsSuite : public KernelsFixture<Target> {};
TYPED_TEST_SUITE_P(KernelsViewsSuite);

TYPED_TEST_P(KernelsViewsSuite, ShiftsReflectsAndMirrors) {
  const auto reflect = [](std::int64_t at, std::int64_t extent) {
    if (at < 0) return -at;
    return at < extent ? at : 2 * (extent - 1) - at;
  };
  for (const Shape& shape : {Shape{2, 5, 7, 3}, Shape{1, 2, 2, 1}, Shape{70, 32, 32, 3}, Shape{3, 4, 6, 17}}) {
    const std::vector<float> values = random_floats(shape.elements(), 4);
    const TensorView x = this->tensor(shape, values), y = this->result(shape);
    for (const ImageShift& shift : {ImageShift{}, ImageShift{.mirror = true}, ImageShift{.down = 1, .right = -1},
                                    ImageShift{.down = -1, .right = 1, .mirror = true}}) {
      this->run([&](Stream& stream) { this->kernels().shift_images(stream, x, shift, y); }, {y});
      std::vector<float> expected;
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        const std::int64_t c = i % shape[3], column = i / shape[3] % shape[2];
        const std::int64_t row = i / shape[3] / shape[2] % shape[1], image = i / shape[3] / shape[2] / shape[1];
        const std::int64_t down = reflect(row + shift.down, shape[1]);
        const std::int64_t right =
            reflect((shift.mirror ? shape[2] - 1 - column : column) + shift.right, shape[2]);
        const std::int64_t from = ((image * shape[1] + down) * shape[2] + right) * shape[3] + c;
        expected.push_back(values[static_cast<std::size_t>(from)]);
      }
      EXPECT_EQ(this->template read<float>(y), expected) << shape.to_string();
    }
  }
}

TYPED_TEST_P(KernelsViewsSuite, TooFarIsRefusedAtOnce) {
  const TensorView x = this->random({1, 4, 5, 1}, 1), y = this->result({1, 4, 5, 1});
  const auto shift = [&](const ImageShift& by, const TensorView& to) {
    this->kernels().shift_images(this->stream(), x, by, to);
  };
  EXPECT_THROW(shift({.down = 4}, y), ConfigError);
  EXPECT_THROW(shift({.right = -5}, y), ConfigError);
  EXPECT_THROW(shift({}, this->result({1, 5, 4, 1})), ConfigError);
  shift({.down = 3, .right = -4}, y);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsViewsSuite, ShiftsReflectsAndMirrors, TooFarIsRefusedAtOnce);

}  // namespace headrace::test
