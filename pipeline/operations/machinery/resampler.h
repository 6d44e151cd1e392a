// Resizes u8 images with an antialiased triangle filter (Pillow's BILINEAR: the support grows with the
// reduction), in 16-bit fixed point: within one level of exact arithmetic, the same bits on every processor.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_window_writer.h"
#include "headrace/pipeline/operations/kernels/resample_kernels.h"

namespace headrace {

// The input pixels of each output pixel along one axis.
struct ResampleAxis {
  std::int64_t taps = 0;             // weights per output pixel; unused ones are 0 and still inside the input
  std::int64_t begin = 0, end = 0;   // of the input pixels used
  std::vector<std::int32_t> first;   // one per output pixel; counted from `begin`
  std::vector<FixedWeight> weights;  // `taps` per output pixel; their sum is kWholeWeight

  // Plans the output pixels [from, to) of `output`.
  void plan(std::int64_t input, std::int64_t output, std::int64_t from, std::int64_t to);

  // Returns it for a device, `begin` being pixel `at` of the whole image.
  JpegResize placed(std::int64_t at) const noexcept {
    return {.axis = {.first = static_cast<std::int32_t>(at),
                     .used = static_cast<std::int32_t>(end - begin),
                     .taps = static_cast<std::int32_t>(taps)},
            .first = first,
            .weights = weights};
  }

 private:
  void weigh(double start, double support, FixedWeight* out);
  std::vector<double> shares_;
};

// Not thread-safe: keeps its tables and row buffers.
class Resampler {
 public:
  // Resizes a part of the output, or all of it, in two steps. First: returns the part of the input that it needs,
  // which begins at the input's first pixel if the output's does.
  ImageWindow plan(const ImageSize& input, const ImageSize& output, const ImageWindow& part);
  // Return the axes as planned, for a device; the part of the input begins at these pixels of the whole image.
  JpegResize vertical(std::int64_t top) const noexcept { return rows_.placed(top); }
  JpegResize horizontal(std::int64_t left) const noexcept { return columns_.placed(left); }
  // Second: computes it; `from` is the input part's first pixel, rows `stride` bytes apart; `to` has no gaps.
  void run(const std::uint8_t* from, std::int64_t stride, std::uint8_t* to, std::int64_t channels);

 private:
  ResampleAxis rows_;
  ResampleAxis columns_;
  PixelPlan pixels_;                  // the columns, of images of three channels
  std::vector<FixedLevel> row_;       // one output row before the horizontal pass, and slack
  std::vector<std::uint8_t> result_;  // one output row, and slack
};

}  // namespace headrace
