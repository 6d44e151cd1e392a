// Records that are equal slices of arrays in memory, for in_memory(), IDX and CIFAR binaries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/arrays/file_elements.h"

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

// Throws Error(kDataCorrupt) for a number beyond i64.
inline Array label_array(std::span<const std::byte> labels, const FileElement& element = {}) {
  Array array{.field = {.name = "label", .dtype = DType::kI64, .shape = {}}, .bytes = {}};
  array.bytes.resize(labels.size() / element.bytes * sizeof(std::int64_t));
  convert_to_i64(element, labels, array.bytes);
  return array;
}

}  // namespace headrace
