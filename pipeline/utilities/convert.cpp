#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/record_file.h"
#include "headrace/pipeline/sources/records/record_file_writer.h"
#include "headrace/pipeline/sources/records/web_shard_writer.h"
#include "headrace/pipeline/utilities/record_packing.h"

namespace headrace {
namespace {

constexpr int kMaxJpegSide = 65500;  // of a JPEG

struct ConvertedPart {
  Split split = Split::kTrain;
  SourcePtr source = {};
  std::set<std::uint64_t> bad = {};  // records that are left out
};

const char* split_name(Split split) { return split == Split::kTrain ? "train" : "test"; }

void check(const ConvertOptions& options, const std::filesystem::path& to) {
  if (options.max_side < 0 || options.max_side > kMaxJpegSide) {
    throw ConfigError("a longest side of " + std::to_string(options.max_side) + " pixels",
                      "it is 1 to " + std::to_string(kMaxJpegSide) + ", or 0 to keep every image's size");
  }
  if (options.quality < 0 || options.quality > 100) {
    throw ConfigError("a JPEG quality of " + std::to_string(options.quality),
                      "it is 1 to 100, or 0 to keep the bytes of the images");
  }
  if (options.errors.on_error == OnError::kSubstitute) {
    throw ConfigError("a record file has each record once: none can stand in the place of a bad one",
                      joined({advice("leave bad records out with {}", named("ErrorPolicy::on_error", "skip")),
                              "end at the first with fail"}));
  }
  if (options.threads < 0) throw ConfigError("threads = " + std::to_string(options.threads) + " is negative");
  const PathKind kind = path_kind(to);
  if (options.shard_bytes == 0 && kind == PathKind::kDirectory) {
    throw ConfigError(to.string() + " is a folder", "name the file that the records go to");
  }
  if (options.shard_bytes > 0 && kind != PathKind::kDirectory && kind != PathKind::kMissing) {
    throw ConfigError(to.string() + " is a file", "name the folder that the record files go to");
  }
}

void refuse_same_files(const std::filesystem::path& data, const std::filesystem::path& to) {
  if (would_overwrite(to, data)) {
    throw ConfigError(to.string() + " is one of the files that are read, and would be overwritten",
                      "name another file");
  }
  if (would_add(to, data)) {
    throw ConfigError(to.string() + " would lie in the folder that is read, as one of its files",
                      "name a file outside of " + data.string());
  }
}

// A table's images lie beside it or elsewhere: they are known once it is open.
void refuse_named_file(const Source& source, const std::filesystem::path& data, const std::filesystem::path& to) {
  if (path_kind(to) != PathKind::kFile || path_kind(data) != PathKind::kFile) return;
  for (std::uint64_t record = 0; record < source.info().records; ++record) {
    if (!would_overwrite(to, data.parent_path() / source.describe(record))) continue;
    throw ConfigError(to.string() + " is an image that " + data.string() + " names, and would be overwritten",
                      "name another file");
  }
}

// A format without the split says so by ConfigError. A missing file is something else: half a copy of a data set
// must not be taken for the whole of it.
SourcePtr open_part(const std::filesystem::path& data, Split split, const SourceOptions& options) {
  try {
    return open_source(data, split, options);
  } catch (const ConfigError&) {
    return nullptr;
  } catch (const DataError& error) {
    if (error.code() != ErrorCode::kNotFound || path_kind(data) == PathKind::kMissing) throw;
    throw DataError(error.code(), "the " + std::string(split_name(split)) + " split: " + error.message(),
                    error.location(), "complete the data, or convert the other split alone");
  }
}

std::vector<ConvertedPart> open_parts(const std::filesystem::path& data, const ConvertOptions& options,
                                      ConvertResult& result) {
  if (options.split)
    return {{.split = *options.split, .source = open_source(data, *options.split, options.source)}};
  std::vector<ConvertedPart> parts;
  for (const Split split : {Split::kTrain, Split::kTest}) {
    if (SourcePtr source = open_part(data, split, options.source)) {
      parts.push_back({.split = split, .source = std::move(source)});
    } else {
      result.absent = split;
    }
  }
  if (parts.empty()) open_source(data, Split::kTrain, options.source);  // says why
  return parts;
}

// The header's counts are without the bad records.
RecordFileHeader header_of(const std::vector<ConvertedPart>& parts) {
  const SourceInfo& first = parts.front().source->info();
  RecordFileHeader header{.fields = first.fields, .classes = first.classes, .splits = {}};
  for (const ConvertedPart& part : parts) {
    const SourceInfo& info = part.source->info();
    if (info.fields != first.fields || info.classes != first.classes) {
      throw ConfigError(info.name + ": train and test differ in their fields or classes",
                        "convert one split alone");
    }
    header.splits.push_back(
        {.split = part.split, .records = info.records - part.bad.size(), .origin = info.fingerprint});
  }
  return header;
}

void check_recoding(const Source& source, const ConvertOptions& options) {
  if (options.max_side == 0 && options.quality == 0 && !options.apply_orientation) return;
  const auto mask = std::ranges::find_if(source.info().fields, is_mask);
  if (mask != source.info().fields.end()) {
    throw ConfigError(
        source.info().name + ": '" + mask->name + "' is a mask, which does not change with its image",
        "leave out the longest side, the quality and the orientation");
  }
  const auto is_encoded = [](const Field& field) { return field.encoding == Encoding::kImage; };
  if (std::ranges::any_of(source.info().fields, is_encoded)) return;
  throw ConfigError(source.info().name + ": its images are raw pixels, which are stored as they are",
                    "leave out the longest side, the quality and the orientation");
}

// Returns the record's own name; empty if the source only numbers its records.
std::string record_name(const Source& source, std::uint64_t record) {
  std::string name = source.describe(record);
  return name == source.info().name + "[" + std::to_string(record) + "]" ? std::string() : name;
}

// Reports the bad records of one source.
class BadRecordList {
 public:
  BadRecordList(const ErrorPolicy& policy, const Source& source) : tally_(policy.tally), source_(source) {
    if (tally_ != nullptr) tally_->begin(source.info());
    if (!policy.quarantine.empty()) quarantine_.emplace(policy.quarantine);
  }

  void add(const BadRecord& bad, OnError action) {
    if (tally_ != nullptr && action == OnError::kSkip) tally_->add(source_.info(), bad);
    if (quarantine_) quarantine_->add(bad, action);
  }

 private:
  std::shared_ptr<BadRecordTally> tally_;
  const Source& source_;
  std::optional<Quarantine> quarantine_;
};

// The file's header says how many records follow, and a file may be a pipe: they are counted first.
void find_bad(ConvertedPart& part, const ConvertOptions& options, const std::function<void()>& done) {
  BadRecordList list(options.errors, *part.source);
  const std::uint64_t records = part.source->info().records;
  const BadRecordLimit limit(options.errors, records,
                             count_of(records, "record") + " of the " + split_name(part.split) + " split");
  RecordPacking(*part.source, options)
      .run(0, records, [&](std::uint64_t record, const RecordPacking::Packed& packed) {
        done();
        if (!packed.failure) return;
        if (!packed.failure->is_of_record()) packed.failure->raise();
        const BadRecord& bad = packed.failure->what;
        list.add(bad, OnError::kSkip);
        part.bad.insert(record);
        if (part.bad.size() > limit.max_bad()) limit.refuse(bad);
        if (part.bad.size() == records) limit.refuse_all(bad);
      });
}

// Writes some of a part's records. What it is made of outlives it.
class PartWriter {
 public:
  PartWriter(const ConvertedPart& part, const ConvertOptions& options, const std::function<void()>& done)
      : part_(part), list_(options.errors, *part.source), packing_(*part.source, options), done_(done) {}

  void write(std::uint64_t first, std::uint64_t count, RecordOutput& writer) {
    packing_.run(first, count, [&](std::uint64_t record, const RecordPacking::Packed& packed) {
      done_();
      if (part_.bad.contains(record)) return;
      if (packed.failure) {
        if (packed.failure->is_of_record()) list_.add(packed.failure->what, OnError::kFail);
        packed.failure->raise();
      }
      RecordView view;
      for (std::size_t i = 0; i < packed.bytes.size(); ++i) view.fields[i] = packed.bytes[i];
      writer.append(view, record_name(*part_.source, record));
    });
  }

  // Returns the bytes that a record has, by 64 of them.
  std::uint64_t mean_bytes() {
    const std::uint64_t records = part_.source->info().records, looks = std::min<std::uint64_t>(records, kLooks);
    std::uint64_t bytes = 0, good = 0;
    for (std::uint64_t i = 0; i < looks; ++i) {
      packing_.run(records * i / looks, 1, [&](std::uint64_t, const RecordPacking::Packed& packed) {
        if (packed.failure) return;
        for (const auto& field : packed.bytes) bytes += field.size();
        ++good;
      });
    }
    return good == 0 ? 0 : bytes / good;
  }

 private:
  static constexpr std::uint64_t kLooks = 64;

  const ConvertedPart& part_;
  BadRecordList list_;
  RecordPacking packing_;
  const std::function<void()>& done_;
};

// Returns a function that calls options.progress, once per record.
std::function<void()> progress_of(const std::vector<ConvertedPart>& parts, const ConvertOptions& options) {
  if (!options.progress) return [] {};
  std::uint64_t records = 0;
  for (const ConvertedPart& part : parts) records += part.source->info().records;
  return [&options, records, done = std::uint64_t{0}]() mutable { options.progress(++done, records); };
}

}  // namespace

void show(ConvertOptions& options, OptionVisitor& visit) {
  visit("format", options.format, "What is written: record files, or tars as WebDataset reads them.");
  visit("max_side", options.max_side, "The maximum side of images; larger ones are reduced to it. 0: none are.");
  visit("quality", options.quality, "Makes every image a JPEG of this quality; 0: only those that are reduced.");
  visit("shard_bytes", options.shard_bytes, "The bytes of each of several files in a folder; 0: one file.");
  visit("threads", options.threads, "Threads that decode and encode; 0: one per processor.");
  visit("apply_orientation", options.apply_orientation, "Whether images are turned as their EXIF data say.");
  enum class Parts { kAll, kTrain, kTest };
  Parts parts = !options.split ? Parts::kAll : *options.split == Split::kTrain ? Parts::kTrain : Parts::kTest;
  visit("split", parts, "The split that is written.", {"all", "train", "test"});
  options.split.reset();
  if (parts != Parts::kAll) options.split = parts == Parts::kTrain ? Split::kTrain : Split::kTest;
  options.source.each_field(visit);
  options.errors.each_field(visit);
}

namespace {

std::unique_ptr<RecordOutput> output_to(std::unique_ptr<FileWriter> file, RecordFileHeader header,
                                        const ConvertOptions& options, std::uint64_t first) {
  if (options.format == ConvertFormat::kRecords)
    return std::make_unique<RecordFileWriter>(std::move(file), std::move(header));
  return std::make_unique<WebShardWriter>(std::move(file), std::move(header.fields), first);
}

// Writes all records into one file.
void write_file(std::unique_ptr<FileWriter> file, const std::vector<ConvertedPart>& parts,
                const ConvertOptions& options, ConvertResult& result) {
  if (options.format == ConvertFormat::kWebDataset && parts.size() > 1) {
    throw ConfigError("a WebDataset archive holds one split",
                      joined({advice("choose one with {}", named("ConvertOptions::split")),
                              advice("write several archives with {}", named("ConvertOptions::shard_bytes"))}));
  }
  const auto writer = output_to(std::move(file), header_of(parts), options, 0);
  const auto done = progress_of(parts, options);
  for (const ConvertedPart& part : parts)
    PartWriter(part, options, done).write(0, part.source->info().records, *writer);
  result.bytes = writer->finish();
}

constexpr std::uint64_t kMaxShards = 100'000;

// Returns the marker's text: everything that the bytes of the files depend on.
std::string marker_text(const std::vector<ConvertedPart>& parts, const ConvertOptions& options) {
  std::string text =
      fmt::format("headrace convert 1\nshard_bytes {}\nmax_side {}\nquality {}\napply_orientation {}\n",
                  options.shard_bytes, options.max_side, options.quality, options.apply_orientation);
  if (options.format != ConvertFormat::kRecords) text += "format webdataset\n";
  for (const ConvertedPart& part : parts) {
    const SourceInfo& info = part.source->info();
    text += fmt::format("{} {} of {:016x}, without {}\n", split_name(part.split), count_of(info.records, "record"),
                        info.fingerprint, fmt::join(part.bad, " "));
  }
  return text;
}

// Creates the folder with its marker, or accepts a folder with the same one.
void begin_in_folder(const std::filesystem::path& folder, const std::string& text) {
  make_folders(folder);
  if (path_kind(folder / kConversionMarker) == PathKind::kFile) {
    const std::vector<std::byte> bytes = read_whole_file(folder / kConversionMarker);
    if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == text) {
      for (const DirectoryEntry& entry : list_directory(folder)) {
        if (is_left_over(entry)) remove_file(entry.path);  // of one that was killed
      }
      return;
    }
    throw ConfigError(folder.string() + ": a conversion of other data, or with other options, was begun there",
                      "name another folder, or remove this one");
  }
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (!is_record_shard(entry.path) && entry.path.extension() != ".tar") continue;
    throw ConfigError(folder.string() + ": holds shards, such as " + entry.path.filename().string(),
                      "name a folder that has none");
  }
  write_file_atomically(folder / kConversionMarker, text);
}

// Returns the size of a file that a conversion left there; std::nullopt: there is none, or it is another.
std::optional<std::uint64_t> size_of_finished(const std::filesystem::path& path, const RecordFileHeader& header,
                                              ConvertFormat format) {
  if (path_kind(path) != PathKind::kFile) return std::nullopt;
  try {
    const File file = File::open(path);
    if (format == ConvertFormat::kWebDataset) {
      return WebShardWriter::records_in(path) == header.records() ? std::optional(file.size()) : std::nullopt;
    }
    std::uint64_t header_bytes = 0;
    if (RecordFileHeader::read(file, header_bytes) != header) return std::nullopt;
    RecordFileIndex(file, header, header_bytes).check(path, header);
    return file.size();
  } catch (const DataError&) {  // it is written again
    return std::nullopt;
  }
}

// Writes the records of one split into its files.
void write_shards(const ConvertedPart& part, RecordFileHeader header, const std::filesystem::path& folder,
                  const ConvertOptions& options, const std::function<void()>& done, ConvertResult& result) {
  PartWriter writer(part, options, done);
  const std::uint64_t records = part.source->info().records, bytes = writer.mean_bytes() * records;
  const std::uint64_t shards = std::clamp<std::uint64_t>((bytes + options.shard_bytes - 1) / options.shard_bytes,
                                                         1, std::clamp<std::uint64_t>(records, 1, kMaxShards));
  for (std::uint64_t shard = 0; shard < shards; ++shard) {
    const std::uint64_t first = records * shard / shards, end = records * (shard + 1) / shards;
    const auto bad = std::distance(part.bad.lower_bound(first), part.bad.lower_bound(end));
    header.splits = {{.split = part.split,
                      .records = end - first - static_cast<std::uint64_t>(bad),
                      .origin = part.source->info().fingerprint}};
    const auto path = folder / fmt::format("{}-{:05}-of-{:05}.{}", split_name(part.split), shard, shards,
                                           options.format == ConvertFormat::kRecords ? "records" : "tar");
    ++result.shards;
    if (const auto size = size_of_finished(path, header, options.format)) {
      for (std::uint64_t i = first; i < end; ++i) done();
      ++result.kept_shards;
      result.bytes += *size;
      continue;
    }
    const auto file = output_to(std::make_unique<FileWriter>(path), header, options, first);
    writer.write(first, end - first, *file);
    result.bytes += file->finish();
  }
}

// Writes the parts into `file`; null: as several files into the folder `to`.
void write_parts(std::vector<ConvertedPart> parts, std::unique_ptr<FileWriter> file,
                 const std::filesystem::path& to, const ConvertOptions& options, ConvertResult& result) {
  result.reading = describe_reading(*parts.front().source);
  for (const ConvertedPart& part : parts) {
    refuse_stream(*part.source, named_or("convert_dataset()", "a conversion"));
    check_recoding(*part.source, options);
  }
  if (options.errors.on_error == OnError::kSkip) {
    const auto done = progress_of(parts, options);
    for (ConvertedPart& part : parts) find_bad(part, options, done);
  }
  for (const ConvertedPart& part : parts) {
    result.records += part.source->info().records - part.bad.size();
    result.bad_records += part.bad.size();
  }
  if (file) return write_file(std::move(file), parts, options, result);
  const RecordFileHeader header = header_of(parts);
  begin_in_folder(to, marker_text(parts, options));
  const auto done = progress_of(parts, options);
  for (const ConvertedPart& part : parts) write_shards(part, header, to, options, done, result);
  remove_file(to / kConversionMarker);
}

// Before the work: it may not be writable. Null if there will be several.
std::unique_ptr<FileWriter> open_file(const std::filesystem::path& to, const ConvertOptions& options) {
  return options.shard_bytes == 0 ? std::make_unique<FileWriter>(to) : nullptr;
}

}  // namespace

ConvertResult convert_dataset(const std::filesystem::path& data, const std::filesystem::path& to,
                              const ConvertOptions& options) {
  check(options, to);
  refuse_same_files(data, options.shard_bytes == 0 ? to : to / kConversionMarker);
  auto file = open_file(to, options);
  ConvertResult result;
  std::vector<ConvertedPart> parts = open_parts(data, options, result);
  for (const ConvertedPart& part : parts) {
    if (file) refuse_named_file(*part.source, data, to);
  }
  write_parts(std::move(parts), std::move(file), to, options, result);
  return result;
}

ConvertResult convert_dataset(const Dataset& data, const std::filesystem::path& to,
                              const ConvertOptions& options) {
  check(options, to);
  const SourcePtr source = data.source();
  if (Dataset::from(source).fingerprint() != data.fingerprint()) {
    throw ConfigError("the dataset has stages, which a record file does not hold",
                      "write what stands before them, and add them when it is read");
  }
  auto file = open_file(to, options);
  ConvertResult result;
  write_parts({{.split = options.split.value_or(Split::kTrain), .source = source}}, std::move(file), to, options,
              result);
  return result;
}

}  // namespace headrace
