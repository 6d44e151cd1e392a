#include "headrace/tests/fuzz/mutator.h"

#include <algorithm>
#include <array>

namespace headrace::fuzz {
namespace {

using test::Bytes;

std::size_t place(std::size_t size, Philox& random) {
  return size == 0 ? 0 : random.below(static_cast<std::uint32_t>(size));
}

// Numbers at which lengths and counts go wrong.
std::uint64_t telling_number(const Bytes& bytes, Philox& random) {
  constexpr std::array<std::uint64_t, 12> kTelling = {
      0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1ULL << 63, ~0ULL};
  const std::uint32_t pick = random.below(kTelling.size() + 3);
  if (pick < kTelling.size()) return kTelling[pick];
  return bytes.size() + pick - kTelling.size() - 1;  // about as long as the input
}

void put_number(Bytes& bytes, Philox& random) {
  const std::uint64_t number = telling_number(bytes, random);
  const std::size_t width = std::size_t{1} << random.below(4);
  const bool big = random.below(2) == 1;
  const std::size_t at = place(bytes.size(), random);
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    bytes[at + i] = static_cast<std::byte>(number >> (8 * (big ? width - 1 - i : i)));
  }
}

}  // namespace

void Mutator::change(Bytes& bytes, Philox& random) const {
  const auto at = static_cast<std::ptrdiff_t>(place(bytes.size(), random));
  const auto length = static_cast<std::ptrdiff_t>(
      std::min<std::size_t>(bytes.size() - static_cast<std::size_t>(at), 1 + random.below(64)));
  switch (random.below(9)) {
    case 0: bytes.resize(static_cast<std::size_t>(at)); break;
    case 1: bytes.erase(bytes.begin() + at, bytes.begin() + at + length); break;
    case 2: {  // a piece once more
      const Bytes piece(bytes.begin() + at, bytes.begin() + at + length);
      bytes.insert(bytes.begin() + at, piece.begin(), piece.end());
      break;
    }
    case 3: {  // the rest of another input
      const Bytes& other = seeds_[place(seeds_.size(), random)];
      const auto from = static_cast<std::ptrdiff_t>(place(other.size(), random));
      bytes.resize(static_cast<std::size_t>(at));
      bytes.insert(bytes.end(), other.begin() + from, other.end());
      break;
    }
    case 4:
    case 5: put_number(bytes, random); break;
    case 6:  // a digit, where numbers are text
      if (!bytes.empty()) bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>('0' + random.below(10));
      break;
    default:
      if (!bytes.empty()) bytes[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(1U << random.below(8));
  }
}

Bytes Mutator::input(std::uint64_t number) const {
  Philox random({.seed = seed_, .record = number});
  Bytes bytes = seeds_[place(seeds_.size(), random)];
  for (std::uint32_t changes = 1 + random.below(6); changes > 0; --changes) change(bytes, random);
  return bytes;
}

}  // namespace headrace::fuzz
