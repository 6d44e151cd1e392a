#include "headrace/pipeline/sources/records/record_file_writer.h"

#include <utility>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/hash.h"

namespace headrace {

RecordFileWriter::RecordFileWriter(std::unique_ptr<FileWriter> file, RecordFileHeader header)
    : header_(std::move(header)), file_(std::move(file)) {
  file_->append(header_.encode());
}

void RecordFileWriter::append(const RecordView& record, std::string_view name) {
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
  const std::uint64_t offset = file_->size();
  file_->append(record_);
  index_.add(offset, xxh3(std::span<const std::byte>(record_)), field_bytes_, name);
}

std::uint64_t RecordFileWriter::finish() {
  HEADRACE_CHECK(index_.size() == header_.records(), "another number of records than the header says");
  file_->append(index_.encode(file_->size()));
  const std::uint64_t bytes = file_->size();
  file_->commit();
  return bytes;
}

}  // namespace headrace
