// Presents each few consecutive records of a dataset as one record.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/combined/joined_source.h"

namespace headrace {

class WindowedSource final : public Source {
 public:
  // Throws ConfigError if a field is encoded or differs in length from record to record. REQUIRES: `size` > 0.
  WindowedSource(JoinedPart records, const WindowOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::string describe(std::uint64_t index) const override;  // "item/4 to item/7"

 private:
  std::uint64_t record_of(std::uint64_t position) const {
    return part_.record_at ? part_.record_at(position) : position;
  }
  // Returns the positions [first, end) of a window.
  std::uint64_t first_of(std::uint64_t index) const noexcept { return index * shift_; }
  std::uint64_t end_of(std::uint64_t index) const noexcept {
    return first_of(index) + std::min(size_, part_.size - first_of(index));
  }

  JoinedPart part_;
  std::uint64_t size_, shift_;
  std::vector<std::size_t> record_bytes_;  // of each field
  SourceInfo info_;
};

}  // namespace headrace
