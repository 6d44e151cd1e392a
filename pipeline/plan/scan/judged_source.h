// A source as the filters behind it saw it: what they could not judge cannot be read.
#pragma once

#include <utility>

#include "headrace/pipeline/plan/scan/filter_failures.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// For what reads the source without an engine; it has no columns.
class JudgedSource final : public Source {
 public:
  JudgedSource(SourcePtr source, FilterFailures filter_failures)
      : source_(std::move(source)), filter_failures_(std::move(filter_failures)) {}

  const SourceInfo& info() const noexcept override { return source_->info(); }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    filter_failures_.check(index);
    return source_->read(index, scratch);
  }
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override { return source_->label(index); }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return source_->offset(index); }
  std::string describe(std::uint64_t index) const override { return source_->describe(index); }

 private:
  SourcePtr source_;
  FilterFailures filter_failures_;
};

}  // namespace headrace
