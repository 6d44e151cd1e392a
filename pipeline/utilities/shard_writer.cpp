#include "headrace/pipeline/shard_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/utilities/converted_part.h"
#include "headrace/pipeline/utilities/shard_folder.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMostShards = 100'000;  // whose names are in their order

const char* shard_ending(ConvertFormat format) { return format == ConvertFormat::kRecords ? "records" : "tar"; }

// Everything that the bytes of the shards depend on, but the records.
std::string shards_marker(const Fields& fields, const std::vector<std::string>& classes,
                          const ConvertOptions& options) {
  Fingerprint fingerprint("shards 1");
  for (const Field& field : fields) fingerprint.add(field);
  for (const std::string& name : classes) fingerprint.add(name);
  return fmt::format(
      "headrace shards 1\n{} as {}, shard_bytes {}\nmax_side {}\nquality {}\napply_orientation {}\nfields and "
      "classes {:016x}\n",
      name_of(*options.split), shard_ending(options.format), options.shard_bytes, options.max_side,
      options.quality, options.apply_orientation, fingerprint.value());
}

}  // namespace

ShardWriter::ShardWriter(std::filesystem::path folder, Fields fields, std::vector<std::string> classes,
                         const ConvertOptions& options)
    : folder_(std::move(folder)), fields_(std::move(fields)), classes_(std::move(classes)), options_(options) {
  if (options_.shard_bytes == 0) options_.shard_bytes = kShardBytes;
  if (!options_.split) options_.split = Split::kTrain;
  check_conversion(options_, folder_);
  const SourcePtr none = shard();  // refuses a number of fields that no record has
  check_recoding(none->info(), options_);
  begin_shards(folder_, shards_marker(fields_, classes_, options_), std::string(name_of(*options_.split)) + "-");
}

std::filesystem::path ShardWriter::path_of(std::uint64_t shard) const {
  return folder_ / fmt::format("{}-{:05}.{}", name_of(*options_.split), shard, shard_ending(options_.format));
}

std::span<const std::byte> ShardWriter::field_of(std::uint64_t record, std::size_t field) const noexcept {
  const std::size_t which = static_cast<std::size_t>(record) * fields_.size() + field;
  const std::uint64_t begin = which == 0 ? 0 : ends_[which - 1];
  return std::span(bytes_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(ends_[which] - begin));
}

std::uint64_t ShardWriter::content() const noexcept {
  Fingerprint fingerprint("shard 1");
  return fingerprint.add(std::span<const std::byte>(bytes_)).add(std::as_bytes(std::span(ends_))).value();
}

SourcePtr ShardWriter::shard() const {
  GeneratorOptions options{.name = path_of(result_.shards).string(),
                           .fields = fields_,
                           .records = ends_.size() / std::max<std::size_t>(fields_.size(), 1),
                           .fingerprint = content(),
                           .classes = classes_};
  options.function = [this](std::uint64_t record, RecordWriter& writer) {
    for (std::size_t field = 0; field < fields_.size(); ++field) writer.put(field, field_of(record, field));
  };
  return generator(std::move(options));
}

void ShardWriter::append(const std::function<void(RecordWriter& record)>& fill) {
  record_.clear();
  RecordWriter writer(fields_, record_);
  fill(writer);
  const RecordView view = writer.view();
  std::size_t size = 0;
  for (const std::span<const std::byte> field : view.fields) size += field.size();
  if (!bytes_.empty() && bytes_.size() + size > options_.shard_bytes) write_shard();
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    const std::span<const std::byte> bytes = view.fields[field];
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    ends_.push_back(bytes_.size());
  }
}

void ShardWriter::write_shard() {
  if (result_.shards == kMostShards) {
    throw ConfigError(folder_.string() + ": holds 100,000 shards, the maximum",
                      advice("raise {}", named("ConvertOptions::shard_bytes")));
  }
  ConvertedPart part{.split = *options_.split, .source = shard()};
  const std::uint64_t records = part.source->info().records;
  const std::function<void()> done = [] {};
  if (options_.errors.on_error == OnError::kSkip) find_bad(part, options_, done);
  const RecordFileHeader header = header_of({part});
  const std::filesystem::path path = path_of(result_.shards);
  // A tar does not say of which records it is.
  const bool may_be_there = options_.format == ConvertFormat::kRecords;
  if (const auto size =
          may_be_there ? size_of_finished(path, header, options_.format) : std::optional<std::uint64_t>{}) {
    ++result_.kept_shards;
    result_.bytes += *size;
  } else {
    const auto file = output_to(std::make_unique<FileWriter>(path), header, options_, given_);
    PartWriter(part, options_, done).write(0, records, *file);
    result_.bytes += file->finish();
  }
  ++result_.shards;
  result_.records += header.records();
  result_.bad_records += part.bad.size();
  given_ += records;
  bytes_.clear();
  ends_.clear();
}

ConvertResult ShardWriter::finish() {
  if (!ends_.empty()) write_shard();
  if (result_.shards == 0) {
    throw ConfigError(folder_.string() + ": no record was given to write", "give at least one before the end");
  }
  // Those of an interrupted run that had more.
  for (std::uint64_t shard = result_.shards; path_kind(path_of(shard)) == PathKind::kFile; ++shard)
    remove_file(path_of(shard));
  remove_file(folder_ / kConversionMarker);
  return result_;
}

}  // namespace headrace
