// Resizes u8 images with an antialiased triangle filter (Pillow's BILINEAR: the support grows with the
// reduction), in 16-bit fixed point: within one level of exact arithmetic, the same bits on every processor.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/kernels/resample_kernels.h"

namespace headrace {

// Which input pixels make an output pixel of one axis.
struct ResampleAxis {
  std::int64_t taps = 0;             // weights an output pixel; unused ones are 0 and still inside the input
  std::int64_t begin = 0, end = 0;   // of the input pixels that are used
  std::vector<std::int32_t> first;   // one an output pixel; counted from `begin`
  std::vector<FixedWeight> weights;  // taps an output pixel, their sum is kWholeWeight

  // For output pixels [from, to) of `output`.
  void plan(std::int64_t input, std::int64_t output, std::int64_t from, std::int64_t to);

 private:
  void weigh(double start, double support, FixedWeight* out);
  std::vector<double> shares_;
};

// Not thread-safe: keeps its tables and row buffers.
class Resampler {
 public:
  // `from` is (input.height, input.width, channels) without gaps, `to` the same of output.
  void resize(const std::uint8_t* from, const ImageSize& input, std::uint8_t* to, const ImageSize& output,
              std::int64_t channels);

  // The same in two steps, for a part of the output. First: the part of the input that it is made of.
  ImageWindow plan(const ImageSize& input, const ImageSize& output, const ImageWindow& part);
  // Then its pixels: `from` is the first of that part, its rows are `stride` bytes apart; `to` is without gaps.
  void run(const std::uint8_t* from, std::int64_t stride, std::uint8_t* to, std::int64_t channels);

 private:
  ResampleAxis rows_;
  ResampleAxis columns_;
  std::vector<FixedWeight> paired_;   // the columns' weights
  std::vector<FixedLevel> row_;       // one output row before the horizontal pass, and slack
  std::vector<std::uint8_t> result_;  // one output row, and slack
};

}  // namespace headrace
