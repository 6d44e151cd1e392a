// Float images, 5,050 to train on and 20 to test with, of which record 17 has a pixel that is no number.
#pragma once

#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline std::filesystem::path write_spoilt_images(const TempFolder& folder) {
  const auto images = [](std::size_t count, bool spoilt) {
    std::vector<float> pixels(count * 784, 0.5F);
    if (spoilt) pixels[17 * 784 + 5] = std::numeric_limits<float>::quiet_NaN();
    return make_npy("<f4", "(" + std::to_string(count) + ", 28, 28, 1)", std::as_bytes(std::span(pixels)));
  };
  const auto labels = [](std::size_t count) {
    return make_npy("|u1", "(" + std::to_string(count) + ",)", Bytes(count));
  };
  return folder.write("floats.npz", ZipBuilder()
                                        .add("x_train.npy", images(5050, true))
                                        .add("y_train.npy", labels(5050))
                                        .add("x_test.npy", images(20, false))
                                        .add("y_test.npy", labels(20))
                                        .finish());
}

}  // namespace headrace::test
