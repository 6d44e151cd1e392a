// A source whose fields of varying length are padded to one length, plus a field for each original length.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/combined/padded_field.h"

namespace headrace {

// The length to which fields of length 0 are padded: a function of that of one field of the record.
struct PaddedLength {
  PaddedField of = {};
  std::function<std::int64_t(std::int64_t)> to = {};
  std::uint64_t identity = 0;
};

class PaddedSource final : public Source {
 public:
  // REQUIRES: the lengths of the paddings are known, or `common` is set.
  PaddedSource(SourcePtr source, std::vector<PaddedField> paddings, PaddedLength common = {});

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  // Pads the records of a stream as they come.
  std::unique_ptr<RecordStream> open_stream(std::uint64_t first) const override;
  void will_read(std::span<const std::uint64_t> records) const override { source_->will_read(records); }
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override { return source_->label(index); }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return source_->offset(index); }
  std::string describe(std::uint64_t index) const override { return source_->describe(index); }

 private:
  class PaddedStream;

  // Copies everything: `view` may be gone before the result is.
  RecordView padded(const RecordView& view, std::uint64_t index, std::vector<std::byte>& scratch) const;

  SourcePtr source_;
  std::vector<PaddedField> paddings_;
  PaddedLength common_;
  SourceInfo info_;
};

}  // namespace headrace
