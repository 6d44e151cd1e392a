#include "headrace/pipeline/utilities/converted_part.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/records/record_file_writer.h"
#include "headrace/pipeline/sources/records/web_shard_writer.h"

namespace headrace {
namespace {

constexpr int kMaxJpegSide = 65500;   // of a JPEG
constexpr std::uint64_t kLooks = 64;  // records that tell how large they are

// Returns the record's own name; empty if the source only numbers its records.
std::string record_name(const Source& source, std::uint64_t record) {
  std::string name = source.describe(record);
  return name == source.info().name + "[" + std::to_string(record) + "]" ? std::string() : name;
}

}  // namespace

const char* name_of(Split split) noexcept { return split == Split::kTrain ? "train" : "test"; }

void check_conversion(const ConvertOptions& options, const std::filesystem::path& to) {
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

void check_recoding(const SourceInfo& info, const ConvertOptions& options) {
  if (options.max_side == 0 && options.quality == 0 && !options.apply_orientation) return;
  const auto mask = std::ranges::find_if(info.fields, is_mask);
  if (mask != info.fields.end()) {
    throw ConfigError(info.name + ": '" + mask->name + "' is a mask, which does not change with its image",
                      "leave out the longest side, the quality and the orientation");
  }
  const auto is_encoded = [](const Field& field) { return field.encoding == Encoding::kImage; };
  if (std::ranges::any_of(info.fields, is_encoded)) return;
  throw ConfigError(info.name + ": its images are raw pixels, which are stored as they are",
                    "leave out the longest side, the quality and the orientation");
}

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

void find_bad(ConvertedPart& part, const ConvertOptions& options, const std::function<void()>& done) {
  BadRecordList list(options.errors, *part.source);
  const std::uint64_t records = part.source->info().records;
  const BadRecordLimit limit(options.errors, records,
                             count_of(records, "record") + " of the " + name_of(part.split) + " split");
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

std::unique_ptr<RecordOutput> output_to(std::unique_ptr<FileWriter> file, RecordFileHeader header,
                                        const ConvertOptions& options, std::uint64_t first) {
  if (options.format == ConvertFormat::kRecords)
    return std::make_unique<RecordFileWriter>(std::move(file), std::move(header));
  return std::make_unique<WebShardWriter>(std::move(file), std::move(header.fields), first);
}

BadRecordList::BadRecordList(const ErrorPolicy& policy, const Source& source)
    : tally_(policy.tally), source_(source) {
  if (tally_ != nullptr) tally_->begin(source.info());
  if (!policy.quarantine.empty()) quarantine_.emplace(policy.quarantine);
}

void BadRecordList::add(const BadRecord& bad, OnError action) {
  if (tally_ != nullptr && action == OnError::kSkip) tally_->add(source_.info(), bad);
  if (quarantine_) quarantine_->add(bad, action);
}

PartWriter::PartWriter(const ConvertedPart& part, const ConvertOptions& options, const std::function<void()>& done)
    : part_(part), list_(options.errors, *part.source), packing_(*part.source, options), done_(done) {}

void PartWriter::write(std::uint64_t first, std::uint64_t count, RecordOutput& writer) {
  packing_.run(first, count, [&](std::uint64_t record, const RecordPacking::Packed& packed) {
    done_();
    if (part_.bad.contains(record)) return;
    if (packed.failure) {
      if (packed.failure->is_of_record()) list_.add(packed.failure->what, OnError::kFail);
      packed.failure->raise();
    }
    RecordView view;
    for (std::size_t i = 0; i < packed.bytes.size(); ++i) view.fields[i] = packed.bytes[i];
    writer.append(view, record_name(*part_.source, record), packed.jpeg_index);
  });
}

std::uint64_t PartWriter::mean_bytes() {
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

}  // namespace headrace
