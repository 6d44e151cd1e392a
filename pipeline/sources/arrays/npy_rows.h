// Arrays in .npy files as the fields of records, each record read by position: for arrays larger than memory
// should hold. Not mapped into memory: a file that shrinks while it is read is an error of a record here, and
// SIGBUS there.
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/arrays/npy_header.h"

namespace headrace {

struct NpyColumn {
  File file;
  NpyHeader header;  // in C order
  Field field;       // i64 of any integers, else tensor_type_of() the elements
};

class NpyRows final : public Source {
 public:
  // Columns of as many records.
  NpyRows(std::string name, std::vector<NpyColumn> columns);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::string describe(std::uint64_t index) const override;  // "name[17]"

 private:
  std::vector<NpyColumn> columns_;
  SourceInfo info_;
};

}  // namespace headrace
