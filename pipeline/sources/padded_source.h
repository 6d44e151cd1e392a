// A source whose fields of varying length are padded to one, with a field more that says the length.
#pragma once

#include <array>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/source.h"

namespace headrace {

class PaddedSource final : public Source {
 public:
  // Reads every record where a length is to be found. ConfigError where a field to pad is not raw and of varying
  // first extent, or the fields become too many.
  PaddedSource(SourcePtr source, std::vector<PadField> pad);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::string describe(std::uint64_t index) const override { return source_->describe(index); }

 private:
  struct Padding {
    std::size_t field = 0;
    std::size_t row_bytes = 0;  // of one entry along the first extent
    std::int64_t length = 0;
    std::byte value = {};

    std::size_t bytes() const noexcept { return row_bytes * static_cast<std::size_t>(length); }
  };

  Padding plan(const PadField& pad) const;
  void find_lengths();
  DataError bad_length(std::uint64_t index, const Padding& padding, std::size_t bytes) const;

  SourcePtr source_;
  std::vector<Padding> paddings_;
  SourceInfo info_;
};

}  // namespace headrace
