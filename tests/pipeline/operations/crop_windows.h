// The windows that chains of operations leave of images.
#pragma once

#include "headrace/pipeline/operations/machinery/pixel_pass.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline WindowChooser chooser(const Operations& operations) {
  const Field any{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic, Shape::kDynamic, 3}};
  PixelPass made(any, kHostPass);
  std::uint16_t number = 0;
  for (const Operation& operation : operations.list()) {
    EXPECT_TRUE(operation.definition().join(made, {.number = number++, .before = any}));
  }
  return made.window;
}

inline CropWindow window_of(const WindowChooser& chooser, std::int64_t height, std::int64_t width,
                            std::uint64_t record = 0) {
  return chooser.choose(height, width, {.seed = 3, .record = record});
}

}  // namespace headrace::test
