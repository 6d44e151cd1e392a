#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/shard_writer.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/streams/shard_stream.h"
#include "headrace/pipeline/utilities/converted_part.h"
#include "headrace/pipeline/utilities/shard_folder.h"

namespace headrace {
namespace {

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
    throw DataError(error.code(), "the " + std::string(name_of(split)) + " split: " + error.message(),
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
constexpr std::uint64_t kStreamWindow = std::uint64_t{64} << 20;  // bytes that are fetched ahead

// Returns the marker's text: everything that the bytes of the files depend on.
std::string marker_text(const std::vector<ConvertedPart>& parts, const ConvertOptions& options) {
  std::string text =
      fmt::format("headrace convert 1\nshard_bytes {}\nmax_side {}\nquality {}\napply_orientation {}\n",
                  options.shard_bytes, options.max_side, options.quality, options.apply_orientation);
  if (options.format != ConvertFormat::kRecords) text += "format webdataset\n";
  for (const ConvertedPart& part : parts) {
    const SourceInfo& info = part.source->info();
    text += fmt::format("{} {} of {:016x}, without {}\n", name_of(part.split), count_of(info.records, "record"),
                        info.fingerprint, fmt::join(part.bad, " "));
  }
  return text;
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
    const auto path = folder / fmt::format("{}-{:05}-of-{:05}.{}", name_of(part.split), shard, shards,
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

// Writes a stream into shards as its records come.
void write_stream(const std::vector<ConvertedPart>& parts, const std::filesystem::path& to, ConvertOptions options,
                  ConvertResult& result) {
  const ConvertedPart& part = parts.front();
  const SourceInfo& info = part.source->info();
  if (parts.size() > 1) {
    throw ConfigError(info.name + ": both splits are streams, which are written one at a time",
                      advice("choose one with {}", named("ConvertOptions::split")));
  }
  if (options.shard_bytes == 0) {
    throw ConfigError(
        info.name + ": is a stream, and a file begins with the number of its records",
        advice("write files of several into a folder with {}", named("ConvertOptions::shard_bytes")));
  }
  options.split = part.split;
  const remote::Window window(kStreamWindow);
  const ShardedSource* const shards = part.source->sharded();
  const auto stream = shards == nullptr
                          ? part.source->open_stream(0)
                          : std::make_unique<ShardStream>(ShardedSourcePtr(part.source, shards), ShardOrder{}, 0);
  ShardWriter writer(to, info.fields, info.classes, options);
  std::vector<std::byte> buffer;
  for (std::uint64_t done = 1; const std::optional<RecordView> record = stream->next(buffer); ++done) {
    writer.append([&](RecordWriter& into) {
      for (std::size_t field = 0; field < info.fields.size(); ++field) into.put(field, record->fields[field]);
    });
    if (options.progress) options.progress(done, kUnknownRecords);
  }
  const ConvertResult before = std::exchange(result, writer.finish());
  result.absent = before.absent;
  result.reading = before.reading;
}

// Writes the parts into `file`; null: as several files into the folder `to`.
void write_parts(std::vector<ConvertedPart> parts, std::unique_ptr<FileWriter> file,
                 const std::filesystem::path& to, const ConvertOptions& options, ConvertResult& result) {
  result.reading = describe_reading(*parts.front().source);
  for (const ConvertedPart& part : parts) check_recoding(part.source->info(), options);
  const auto is_stream = [](const ConvertedPart& part) { return part.source->info().streamed; };
  if (std::ranges::any_of(parts, is_stream)) return write_stream(parts, to, options, result);
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
  begin_shards(to, marker_text(parts, options), {});
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
  check_conversion(options, to);
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
  check_conversion(options, to);
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
