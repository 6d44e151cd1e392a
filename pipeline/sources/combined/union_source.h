// Several sources as one: their records one after the other.
#pragma once

#include <vector>

#include "headrace/pipeline/source.h"

namespace headrace {

class UnionSource final : public Source {
 public:
  // Throws ConfigError if fields or class names differ. `what` is the requested operation, for messages. `made`:
  // the fields of each part once it is processed, which its bytes are not; empty: all are as the sources hold
  // them.
  UnionSource(const std::string& what, std::vector<SourcePtr> parts, const std::vector<Fields>& made = {});

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override;
  std::uint64_t offset(std::uint64_t index) const noexcept override;
  std::string describe(std::uint64_t index) const override;

 private:
  // Returns the part with this record and changes `index` to the part's own number.
  const Source& part_of(std::uint64_t& index) const;

  std::vector<SourcePtr> parts_;
  std::vector<std::uint64_t> ends_;
  SourceInfo info_;
};

}  // namespace headrace
