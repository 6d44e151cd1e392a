// Writes a record file, record after record. pipeline/FORMAT.md describes the bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/records/record_file_format.h"

namespace headrace {

// Not thread-safe. No file exists under its final name before finish().
class RecordFileWriter {
 public:
  RecordFileWriter(const std::filesystem::path& path, RecordFileHeader header);
  // Writes to a file that was opened earlier, and is empty.
  RecordFileWriter(std::unique_ptr<FileWriter> file, RecordFileHeader header);

  // Appends the next record, in the order of the header's splits. Throws DataError if a raw field's size differs
  // from the header's.
  void append(const RecordView& record, std::string_view name);
  // Finishes the file and returns its bytes. REQUIRES: as many records were appended as the header says.
  std::uint64_t finish();

 private:
  RecordFileHeader header_;
  std::unique_ptr<FileWriter> file_;
  RecordIndexBuilder index_;
  std::vector<std::byte> record_;           // the last one
  std::vector<std::uint64_t> field_bytes_;  // of it
};

}  // namespace headrace
