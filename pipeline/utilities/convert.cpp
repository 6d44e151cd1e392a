#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/machinery/image_recoder.h"
#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/record_file_writer.h"
#include "headrace/pipeline/tasks/failure.h"
#include "headrace/pipeline/tasks/retry.h"

namespace headrace {
namespace {

// The records of a source as convert_dataset() writes them, made by several threads. Of one source, which must
// outlive it. One thread; those that it starts are gone when a call returns.
class RecordPacking {
 public:
  // One record in its final form, or why it cannot be written.
  struct Packed {
    std::array<std::vector<std::byte>, kMaxFields> bytes;
    std::optional<Failure> failure;
  };
  using Take = std::function<void(std::uint64_t record, const Packed& packed)>;

  RecordPacking(const Source& source, const ConvertOptions& options);
  ~RecordPacking();

  // Gives every record to `take`, in order, on the calling thread: what is given depends on no thread. Throws what
  // `take` throws.
  void run(const Take& take);

 private:
  class Packer;

  void announce(std::uint64_t end);
  void make(std::uint64_t first, std::uint64_t count);

  const Source& source_;
  LabelCheck labels_;
  std::vector<std::unique_ptr<Packer>> packers_;  // one per thread
  std::vector<Packed> records_;
  std::uint64_t announced_ = 0;  // records before it were
};

constexpr std::size_t kRecordsAThread = 16;     // made at a time
constexpr std::uint64_t kAnnouncedAhead = 256;  // announced to a source behind a network

bool has_encoded(const Source& source) {
  return std::ranges::any_of(source.info().fields, [](const Field& f) { return f.encoding == Encoding::kImage; });
}

// Copying bytes is the disk's work: more threads would wait for it.
std::size_t threads_for(const Source& source, const ConvertOptions& options) {
  if (!has_encoded(source)) return 1;
  return options.threads > 0 ? static_cast<std::size_t>(options.threads)
                             : std::max(1U, std::thread::hardware_concurrency());
}

// One thread's tools for packing records.
class RecordPacking::Packer {
 public:
  Packer(const Source& source, const LabelCheck& labels, const RecodeOptions& options)
      : source_(source), labels_(labels), recoder_(options) {}

  void pack(std::uint64_t record, Packed& to) {
    to.failure.reset();
    try {
      const RecordView view = read_with_retries(
          system_clock(), [&] { return source_.read(record, scratch_); }, [] { return true; });
      labels_.check(view);
      const Fields& fields = source_.info().fields;
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto bytes = fields[i].encoding == Encoding::kImage ? recode(view.fields[i]) : view.fields[i];
        to.bytes[i].assign(bytes.begin(), bytes.end());
      }
    } catch (const std::exception& error) {
      to.failure = Failure::of_record(source_, record, 0, error);
    }
  }

 private:
  std::span<const std::byte> recode(std::span<const std::byte> image) {
    try {
      return recoder_.recode(image);
    } catch (const Error& error) {
      throw StepError(error.code(), "convert", error.message(), error.hint());
    }
  }

  const Source& source_;
  const LabelCheck& labels_;
  ImageRecoder recoder_;
  std::vector<std::byte> scratch_;
};

RecordPacking::RecordPacking(const Source& source, const ConvertOptions& options)
    : source_(source), labels_(source) {
  const RecodeOptions recode{
      .max_side = options.max_side, .quality = options.quality, .apply_orientation = options.apply_orientation};
  for (std::size_t i = 0; i < threads_for(source, options); ++i) {
    packers_.push_back(std::make_unique<Packer>(source_, labels_, recode));
  }
  records_.resize(packers_.size() * kRecordsAThread);
}

RecordPacking::~RecordPacking() = default;

// A few records for each thread at a time, which are then given away in order.
void RecordPacking::run(const Take& take) {
  const std::uint64_t records = source_.info().records;
  for (std::uint64_t first = 0; first < records; first += records_.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(records_.size(), records - first);
    announce(std::min(records, first + count + kAnnouncedAhead));
    make(first, count);
    for (std::uint64_t i = 0; i < count; ++i) take(first + i, records_[i]);
  }
}

void RecordPacking::announce(std::uint64_t end) {
  std::vector<std::uint64_t> records(static_cast<std::size_t>(end - announced_));
  std::iota(records.begin(), records.end(), announced_);
  if (!records.empty()) source_.will_read(records);
  announced_ = end;
}

void RecordPacking::make(std::uint64_t first, std::uint64_t count) {
  std::atomic<std::uint64_t> next{0};
  const auto work = [&](Packer& packer) {
    for (std::uint64_t i = 0; (i = next.fetch_add(1)) < count;) packer.pack(first + i, records_[i]);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < packers_.size(); ++i) helpers.emplace_back(work, std::ref(*packers_[i]));
  work(*packers_.front());
}

constexpr int kMaxJpegSide = 65500;  // of a JPEG

struct ConvertedPart {
  Split split = Split::kTrain;
  SourcePtr source = {};
  std::set<std::uint64_t> bad = {};  // records that are left out
};

const char* split_name(Split split) { return split == Split::kTrain ? "train" : "test"; }

void check(const ConvertOptions& options, const std::filesystem::path& data, const std::filesystem::path& to) {
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
  if (path_kind(to) == PathKind::kDirectory) {
    throw ConfigError(to.string() + " is a folder", "name the file that the records go to");
  }
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
  RecordPacking(*part.source, options).run([&](std::uint64_t record, const RecordPacking::Packed& packed) {
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

void pack(const ConvertedPart& part, const ConvertOptions& options, RecordFileWriter& writer,
          const std::function<void()>& done) {
  BadRecordList list(options.errors, *part.source);
  RecordPacking(*part.source, options).run([&](std::uint64_t record, const RecordPacking::Packed& packed) {
    done();
    if (part.bad.contains(record)) return;
    if (packed.failure) {
      if (packed.failure->is_of_record()) list.add(packed.failure->what, OnError::kFail);
      packed.failure->raise();
    }
    RecordView view;
    for (std::size_t i = 0; i < packed.bytes.size(); ++i) view.fields[i] = packed.bytes[i];
    writer.append(view, record_name(*part.source, record));
  });
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
  visit("max_side", options.max_side, "The maximum side of images; larger ones are reduced to it. 0: none are.");
  visit("quality", options.quality, "Makes every image a JPEG of this quality; 0: only those that are reduced.");
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

ConvertResult convert_dataset(const std::filesystem::path& data, const std::filesystem::path& to,
                              const ConvertOptions& options) {
  check(options, data, to);
  auto file = std::make_unique<FileWriter>(to);  // before the work: it may not be writable
  ConvertResult result;
  std::vector<ConvertedPart> parts = open_parts(data, options, result);
  result.reading = describe_reading(*parts.front().source);
  for (const ConvertedPart& part : parts) {
    refuse_stream(*part.source, named_or("convert_dataset()", "a conversion"));
    check_recoding(*part.source, options);
    refuse_named_file(*part.source, data, to);
  }
  if (options.errors.on_error == OnError::kSkip) {
    const auto done = progress_of(parts, options);
    for (ConvertedPart& part : parts) find_bad(part, options, done);
  }
  RecordFileWriter writer(std::move(file), header_of(parts));
  const auto done = progress_of(parts, options);
  for (const ConvertedPart& part : parts) {
    pack(part, options, writer, done);
    result.records += part.source->info().records - part.bad.size();
    result.bad_records += part.bad.size();
  }
  result.bytes = writer.finish();
  return result;
}

}  // namespace headrace
