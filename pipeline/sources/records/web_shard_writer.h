// Writes a tar in WebDataset's naming: the fields of a record are files whose names begin alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/records/record_output.h"

namespace headrace {

// Record 12 of fields image, label, caption and box: 000000012.jpg (or png: the bytes as they are), 000000012.cls
// (the number in decimal), 000000012.caption.txt (bytes of varying number, as they are), 000000012.box.npy. The
// bytes of the tar depend on the records alone.
class WebShardWriter final : public RecordOutput {
 public:
  // `first`: the number of the first record. Throws ConfigError for fields that have no image in a file's bytes,
  // or whose names cannot be parts of a file's.
  WebShardWriter(std::unique_ptr<FileWriter> file, Fields fields, std::uint64_t first);

  void append(const RecordView& record, std::string_view name, std::span<const std::byte> jpeg_index) override;
  std::uint64_t finish() override;

  // Returns how many records such a tar has. Throws DataError if it cannot be read.
  static std::uint64_t records_in(const std::filesystem::path& path);

 private:
  void add_field(const Field& field, std::span<const std::byte> bytes);
  void add_file(const std::string& ending, std::span<const std::byte> head, std::span<const std::byte> bytes = {});

  std::unique_ptr<FileWriter> file_;
  Fields fields_;
  std::uint64_t number_;
};

}  // namespace headrace
