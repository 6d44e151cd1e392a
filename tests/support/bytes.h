// Owned bytes, as fixtures pass them around.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::test {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline Bytes to_bytes(std::span<const std::byte> view) { return {view.begin(), view.end()}; }

// What happens to files on their way: cut, flipped, overwritten.

inline Bytes cut_to_percent(const Bytes& file, std::size_t percent) {
  return Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() * percent / 100));
}

// The end of the file was never written: it reads as zeros.
inline Bytes with_zero_tail(Bytes file, std::size_t percent) {
  std::fill(file.begin() + static_cast<std::ptrdiff_t>(file.size() * percent / 100), file.end(), std::byte{0});
  return file;
}

inline Bytes with_flipped_bit(Bytes file, std::size_t bit) {
  file[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  return file;
}

// A stretch of the file holds something else.
inline Bytes with_other_bytes(Bytes file, std::mt19937& random) {
  const std::size_t begin = random() % file.size(), count = 1 + random() % 24;
  for (std::size_t i = begin; i < std::min(begin + count, file.size()); ++i) {
    file[i] = static_cast<std::byte>(random());
  }
  return file;
}

inline Bytes with_inserted(Bytes file, std::size_t at, const Bytes& more) {
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return file;
}

// Every truncation by a percent, zeros from every fifth, `flips` flipped bits, some of them in the last tenth, and
// `flips` / 4 overwritten stretches.
inline std::vector<Bytes> damaged_files(const Bytes& file, std::size_t flips, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Bytes> all;
  for (std::size_t percent = 0; percent < 100; ++percent) all.push_back(cut_to_percent(file, percent));
  for (std::size_t percent = 5; percent < 100; percent += 5) all.push_back(with_zero_tail(file, percent));
  for (std::size_t i = 0; i < flips; ++i) {
    const std::size_t reach = i % 3 == 0 ? file.size() / 10 : file.size();
    all.push_back(with_flipped_bit(file, (file.size() - 1 - random() % reach) * 8 + random() % 8));
  }
  for (std::size_t i = 0; i < flips / 4; ++i) all.push_back(with_other_bytes(file, random));
  return all;
}

}  // namespace headrace::test
