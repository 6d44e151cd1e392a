// A batch-level operation, compiled: mixes the rows of two examples with each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/pipeline/operations/sample_stage.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// Both rows of a pair are read and written together, so that nothing is overwritten before it was read, whichever
// thread works on whichever pair: mixing is done in place, after all rows of a batch are written, and reads and
// writes each row once. Running a partner's record a second time instead would double the decoding.
class Mixer {
 public:
  // `planned` is batch-level and fits `fields`, the finished sample's.
  Mixer(const PlannedOperation& planned, const Fields& fields);

  std::uint16_t number() const noexcept { return number_; }

  // Const and thread-safe for different pairs. No row may be part of two calls at once.
  void mix(const SampleRows& first, const SampleRows& second, Philox random) const;

 private:
  void blend_images(std::byte* first, std::byte* second, float share) const;
  // Returns the share of the area that stays.
  float exchange_rectangle(std::byte* first, std::byte* second, double share, Philox& random) const;

  bool cuts_ = false;
  float alpha_ = 1;
  float probability_ = 1;
  std::uint16_t number_ = 0;
  std::size_t image_ = 0, label_ = 0;  // fields
  DType type_ = DType::kF32;           // of the image
  std::int64_t elements_ = 0;          // of the image
  std::int64_t classes_ = 0;
  // Of an image: planes of (height, width) pixels of pixel_bytes.
  std::int64_t planes_ = 1, height_ = 1, width_ = 1, pixel_bytes_ = 1;
};

}  // namespace headrace
