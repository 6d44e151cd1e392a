// Small data sets that nets can learn, in the formats of the real ones: digits/ as MNIST's IDX files, cifar10/ as
// CIFAR-10's binary ones.
//   example_data FOLDER
#include <headrace/devices/base/rng.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using headrace::Philox;

// A bright square whose place tells the label, in noise. Bytes channel by channel.
std::string image(Philox& random, int label, int side, int channels) {
  const int cell = side / 4, top = label / 4 * cell, left = label % 4 * cell;
  std::string bytes;
  for (int i = 0; i < channels * side * side; ++i) {
    const int y = i / side % side, x = i % side;
    const bool bright = y >= top && y < top + cell && x >= left && x < left + cell;
    bytes += static_cast<char>((bright ? 128U : 0U) + random.below(100));
  }
  return bytes;
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

void write_digits(const std::filesystem::path& folder, const std::string& half, std::uint32_t count) {
  Philox random({.seed = count});
  std::ofstream images(folder / (half + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (half + "-labels-idx1-ubyte"), std::ios::binary);
  images << big_endian(0x803) << big_endian(count) << big_endian(28) << big_endian(28);
  labels << big_endian(0x801) << big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(random.below(10));
    images << image(random, label, 28, 1);
    labels << static_cast<char>(label);
  }
}

void write_cifar(const std::filesystem::path& file, std::uint32_t count, std::uint64_t seed) {
  Philox random({.seed = seed});
  std::ofstream records(file, std::ios::binary);
  for (std::uint32_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(random.below(10));
    records << static_cast<char>(label) << image(random, label, 32, 3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "data";
  std::filesystem::create_directories(folder / "digits");
  std::filesystem::create_directories(folder / "cifar10");
  write_digits(folder / "digits", "train", 3000);
  write_digits(folder / "digits", "t10k", 500);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    write_cifar(folder / "cifar10" / ("data_batch_" + std::to_string(i) + ".bin"), 400, i);
  }
  write_cifar(folder / "cifar10" / "test_batch.bin", 400, 6);
}
