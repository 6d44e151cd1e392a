// The fields of varying length of ragged_batch(): which they are, and how long they can be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/scan/scan_once.h"
#include "headrace/pipeline/sources/combined/padded_field.h"

namespace headrace {

// Shared by all plans derived from one ragged_batch(). Thread-safe.
class RaggedBatch {
 public:
  // `measurable`: whether the fields of `source` are as its records hold them, so that their lengths can be read.
  // Throws ConfigError if the options make no sense.
  RaggedBatch(SourcePtr source, bool measurable, std::vector<RaggedField> fields);

  // Returns the options, empty if each field of varying length is ragged.
  const std::vector<RaggedField>& fields() const noexcept { return fields_; }

  // Adds the fields of offsets to those of a finished sample, and makes bytes of the images that stay encoded.
  // Throws ConfigError if a field cannot be ragged, or none is.
  std::vector<RaggedTensor> add_offsets(Fields& fields) const;
  // Returns the maximum length of such a field. Reads all records the first time that it needs to, and throws as
  // with_lengths() does. Throws ConfigError if it is neither given nor the length of a field of the source.
  std::int64_t max_length(const std::string& field) const;

 private:
  std::int64_t given_length(const std::string& field) const noexcept;
  bool names(const std::string& field) const noexcept;
  void measure(std::size_t index);

  SourcePtr source_;
  std::vector<RaggedField> fields_;
  std::vector<PaddedField> measured_;  // of the source's fields
  ScanOnce<std::vector<PaddedField>> scan_;
};

}  // namespace headrace
