#include "headrace/pipeline/sources/records/record_file_writer.h"

#include <utility>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/hash.h"

namespace headrace {

RecordFileWriter::RecordFileWriter(std::unique_ptr<FileWriter> file, RecordFileHeader header)
    : header_(std::move(header)), file_(std::move(file)), index_(header_.has_jpeg_indexes()) {
  file_->append(header_.encode());
}

void RecordFileWriter::append(const RecordView& record, std::string_view name,
                              std::span<const std::byte> jpeg_index) {
  record_.clear();
  field_bytes_.clear();
  for (std::size_t i = 0; i < header_.fields.size(); ++i) {
    const Field& field = header_.fields[i];
    const std::span<const std::byte> bytes = record.fields[i];
    if (!FieldSize(field).allows(bytes.size())) {
      throw DataError(ErrorCode::kDataCorrupt,
                      "field '" + field.name + "' has " + std::to_string(bytes.size()) + " bytes, not those of " +
                          field.shape.to_string(),
                      {.source = std::string(name), .record = index_.size()});
    }
    field_bytes_.push_back(bytes.size());
    record_.insert(record_.end(), bytes.begin(), bytes.end());
  }
  const std::uint64_t offset = file_->size(), checksum = xxh3(std::span<const std::byte>(record_));
  const std::size_t jpeg_bytes = jpeg_index.empty() ? 0 : kJpegChecksum + jpeg_index.size();
  if (jpeg_bytes > 0) {
    const std::uint64_t of_index = xxh3(jpeg_index, checksum);
    const auto bytes = std::as_bytes(std::span(&of_index, 1));
    record_.insert(record_.end(), bytes.begin(), bytes.end());
    record_.insert(record_.end(), jpeg_index.begin(), jpeg_index.end());
  }
  file_->append(record_);
  index_.add(offset, checksum, field_bytes_, name, jpeg_bytes);
}

std::uint64_t RecordFileWriter::finish() {
  HEADRACE_CHECK(index_.size() == header_.records(), "another number of records than the header says");
  file_->append(index_.encode(file_->size()));
  const std::uint64_t bytes = file_->size();
  file_->commit();
  return bytes;
}

}  // namespace headrace
