// Writes a record file, record after record. pipeline/FORMAT.md describes the bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/records/record_file_header.h"
#include "headrace/pipeline/sources/records/record_file_index.h"

namespace headrace {

// Not thread-safe. Nothing lies under the file's name before finish().
class RecordFileWriter {
 public:
  RecordFileWriter(const std::filesystem::path& path, RecordFileHeader header);
  // Into a file that was opened earlier, and is empty.
  RecordFileWriter(std::unique_ptr<FileWriter> file, RecordFileHeader header);

  // The next record, in the order of the header's splits. DataError where a raw field has another size than the
  // header says.
  void append(const RecordView& record, std::string_view name);
  // After as many records as the header says. Returns the bytes of the file.
  std::uint64_t finish();

 private:
  RecordFileHeader header_;
  std::unique_ptr<FileWriter> file_;
  RecordFileIndex index_;
  std::vector<std::byte> record_;
};

}  // namespace headrace
