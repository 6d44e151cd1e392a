// Small data sets on disk of the kinds that the recipes train on.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

// CIFAR-10's binary files: five with `train` records each, one with `test`.
inline void write_cifar(const TempFolder& folder, std::size_t train = 10, std::size_t test = 10) {
  for (std::size_t file = 1; file <= 6; ++file) {
    Bytes records((file == 6 ? test : train) * 3073);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::size_t record = i / 3073 % 10;
      records[i] = static_cast<std::byte>(i % 3073 == 0 ? record : (i * 7919 * file) >> 4);
    }
    folder.write(file == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(file) + ".bin", records);
  }
}

// MNIST's IDX files of 28 x 28 pixels.
inline void write_digits(const TempFolder& folder, std::size_t train, std::size_t test = 40) {
  const auto number = [](Bytes& bytes, std::size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(value >> shift));
  };
  for (const std::string half : {"train", "t10k"}) {
    const std::size_t count = half == "train" ? train : test;
    Bytes images{std::byte{0}, std::byte{0}, std::byte{8}, std::byte{3}};
    for (const std::size_t extent : {count, std::size_t{28}, std::size_t{28}}) number(images, extent);
    for (std::size_t i = 0; i < count * 784; ++i) images.push_back(static_cast<std::byte>((i * 7919) >> 4));
    Bytes labels{std::byte{0}, std::byte{0}, std::byte{8}, std::byte{1}};
    number(labels, count);
    for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<std::byte>(i % 10));
    folder.write(half + "-images-idx3-ubyte", images);
    folder.write(half + "-labels-idx1-ubyte", labels);
  }
}

}  // namespace headrace::test
