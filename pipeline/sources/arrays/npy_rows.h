// Arrays in .npy files as the fields of records, each record read by position: for arrays too large for memory.
// Not memory-mapped: a file that shrinks while it is read is a record's error here, but SIGBUS with a mapping.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/arrays/npy_header.h"

namespace headrace {

struct NpyColumn {
  File file;
  NpyHeader header;  // in C order
  Field field;       // i64 from any integers, else tensor_type_of() the elements
};

class NpyRows final : public Source {
 public:
  // REQUIRES: all columns have equally many records.
  NpyRows(std::string name, std::vector<NpyColumn> columns);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::string describe(std::uint64_t index) const override;  // "name[17]"

 private:
  std::vector<NpyColumn> columns_;
  SourceInfo info_;
};

}  // namespace headrace
