// Writes a record file, record after record. pipeline/FORMAT.md describes the bytes.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/records/record_file_format.h"
#include "headrace/pipeline/sources/records/record_output.h"

namespace headrace {

class RecordFileWriter final : public RecordOutput {
 public:
  // REQUIRES: the file is empty.
  RecordFileWriter(std::unique_ptr<FileWriter> file, RecordFileHeader header);

  // In the order of the header's splits.
  void append(const RecordView& record, std::string_view name, std::span<const std::byte> jpeg_index) override;
  // REQUIRES: as many records were appended as the header says.
  std::uint64_t finish() override;

 private:
  RecordFileHeader header_;
  std::unique_ptr<FileWriter> file_;
  RecordIndexBuilder index_;
  std::vector<std::byte> record_;           // the last one
  std::vector<std::uint64_t> field_bytes_;  // of it
};

}  // namespace headrace
