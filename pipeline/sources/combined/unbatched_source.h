// Presents a source of records of N equal samples each as a source of those samples.
#pragma once

#include <array>

#include "headrace/pipeline/source.h"

namespace headrace {

class UnbatchedSource final : public Source {
 public:
  // Throws ConfigError if a field is encoded, or if the first extents are not one fixed number.
  explicit UnbatchedSource(SourcePtr batches);

  const SourceInfo& info() const noexcept override { return info_; }
  // Returns the number of samples in one record: the first extent of every field.
  std::uint64_t rows() const noexcept { return rows_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::string describe(std::uint64_t index) const override;  // "batch[3] row 5"

 private:
  SourcePtr batches_;
  std::uint64_t rows_ = 0;
  std::array<std::size_t, kMaxFields> row_bytes_{};
  SourceInfo info_;
};

}  // namespace headrace
