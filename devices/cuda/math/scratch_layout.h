// How temporary data lies in scratch memory: the tensors of a call, the matrices of a batch of Muon. Private to
// the CUDA backend.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::cuda {

// The layout of a call's temporary tensors in one block of scratch memory.

// Adds up pieces; each begins at a multiple of 256 bytes, like cudaMalloc's blocks.
class ScratchLayout {
 public:
  // Adds a piece of `bytes` and returns its offset.
  constexpr std::size_t add(std::size_t bytes) noexcept {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  constexpr std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 256;

  std::size_t bytes_ = 0;
};

// The layout of Muon's matrices in a batch of equal ones. Plain C++, for host and device. Private to the CUDA
// backend.

inline constexpr int kMaxMuonBatch = 16;  // matrices in one batch of products

// A weight matrix (O, K) in the batch: transposed if it has more rows than columns, which keeps X X' small.
struct MuonShape {
  std::int64_t outputs = 0, inputs = 0;  // O, K

  constexpr bool turned() const noexcept { return outputs > inputs; }
  constexpr std::int64_t rows() const noexcept { return turned() ? inputs : outputs; }
  constexpr std::int64_t columns() const noexcept { return turned() ? outputs : inputs; }
};

// Every matrix of a batch is padded with zeros to this; zeros change none of the products.
struct MuonExtent {
  std::int64_t rows = 0, columns = 0;

  constexpr std::int64_t elements() const noexcept { return rows * columns; }
};

// Returns the extent that also holds `shape`: both numbers are multiples of 8, so that bf16 rows begin at
// multiples of 16 bytes.
constexpr MuonExtent widened(MuonExtent extent, MuonShape shape) noexcept {
  const auto up = [](std::int64_t a, std::int64_t b) {
    const std::int64_t rounded = (b + 7) / 8 * 8;
    return a > rounded ? a : rounded;
  };
  return {.rows = up(extent.rows, shape.rows()), .columns = up(extent.columns, shape.columns())};
}

// Returns the element of the weight matrix at `position` of its padded matrix; -1 in the padding.
constexpr std::int64_t element_at(MuonShape shape, MuonExtent extent, std::int64_t position) noexcept {
  const std::int64_t row = position / extent.columns;
  const std::int64_t column = position % extent.columns;
  if (row >= shape.rows() || column >= shape.columns()) return -1;
  return shape.turned() ? column * shape.inputs + row : row * shape.inputs + column;
}

// Returns the element's position in its padded matrix.
constexpr std::int64_t position_of(MuonShape shape, MuonExtent extent, std::int64_t element) noexcept {
  const std::int64_t output = element / shape.inputs;
  const std::int64_t input = element % shape.inputs;
  return shape.turned() ? input * extent.columns + output : output * extent.columns + input;
}

// Returns the update from the updated velocity: with Nesterov's momentum it looks ahead.
constexpr float muon_update(float gradient, float velocity, float momentum, bool nesterov) noexcept {
  return nesterov ? gradient + momentum * velocity : velocity;
}

}  // namespace headrace::cuda
