// A batch-level operation, compiled: mixes the rows of two examples with each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Checks what mixup and cutmix need of the image and of their options.
void want_mixable(const FieldChecks& checks, float alpha, float probability);

// The mixed image and its label, in a finished sample's rows.
struct MixedFields {
  explicit MixedFields(const Fields& fields);

  std::size_t image = 0, label = 0;
  DType type = DType::kF32;  // of the image
  Shape shape;               // of the image
  std::int64_t classes = 0;

  void blend_labels(const SampleRows& first, const SampleRows& second, float share) const;
};

// Both rows of a pair are read and written together, so that nothing is overwritten before it is read, regardless
// of which thread works on which pair: mixing is done in place, after all rows of a batch are written, and reads
// and writes each row once. Running a partner's record a second time instead would double the decoding.
class Mixer {
 public:
  // REQUIRES: `planned` is batch-level and fits `fields`, the finished sample's.
  Mixer(const PlannedOperation& planned, const Fields& fields);

  std::uint16_t number() const noexcept { return number_; }

  // Mixes a pair. Const and thread-safe for different pairs. No row may be part of two calls at once.
  void mix(const SampleRows& first, const SampleRows& second, Philox random) const {
    pairs_->mix(first, second, random);
  }

 private:
  std::uint16_t number_ = 0;
  std::unique_ptr<const PairMixer> pairs_;
};

}  // namespace headrace
