// Dropout by counter: each element's fate is a function of where it stands. Private to the CPU backend.
#pragma once

#include <cstdint>

namespace headrace::cpu {

// Names the random words of one row: element e gets word e of Philox({.seed = seed, .epoch = low 32 bits of
// step, .record = row, .operation = layer}).
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint16_t layer = 0;
  std::uint64_t first_row = 0;  // the global number of the first row
};

// y = x / (1 - rate) where the word is at least rate * 2^32, else 0. 0 <= rate < 1; y may be x.
// T is float or BFloat16.
template <typename T>
void dropout(const DropoutKey& key, float rate, const T* x, T* y, std::int64_t rows, std::int64_t elements);

}  // namespace headrace::cpu
