// Records that are equal slices of arrays in memory, for in_memory(), IDX and CIFAR binaries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

class ArraySource final : public Source {
 public:
  // Throws ConfigError if an array's size is not `records` times its field's. `label_count` as in SourceInfo;
  // `begins_at`: offset of the first array's records in the file `name`.
  ArraySource(std::string name, std::uint64_t records, std::vector<BorrowedArray> arrays,
              std::vector<std::string> classes = {}, std::uint64_t label_count = 0,
              std::uint64_t begins_at = DataLocation::kUnknown);
  // `columns` as in SourceInfo.
  ArraySource(std::string name, std::uint64_t records, std::vector<Array> arrays,
              std::vector<std::string> classes = {}, std::uint64_t label_count = 0,
              std::uint64_t begins_at = DataLocation::kUnknown, std::vector<SourceColumn> columns = {});

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::span<const std::byte> peek(std::uint64_t index) const noexcept override;
  std::span<const FieldColumn> columns() const noexcept override { return columns_; }
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override;
  std::uint64_t offset(std::uint64_t index) const noexcept override;
  std::string describe(std::uint64_t index) const override;  // "name[17]"

 private:
  std::vector<BorrowedArray> arrays_;
  std::vector<FieldColumn> columns_;  // by array
  FieldColumn largest_;               // the largest of them, by its records' bytes
  std::uint64_t begins_at_;
  SourceInfo info_;
};

}  // namespace headrace
