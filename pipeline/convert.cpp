#include "headrace/pipeline/convert.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/overwriting.h"
#include "headrace/pipeline/sources/record_file_writer.h"
#include "headrace/pipeline/stages/image_recoder.h"

namespace headrace {
namespace {

constexpr int kLongestSide = 65500;  // of a JPEG

struct Part {
  Split split = Split::kTrain;
  SourcePtr source;
};

void check(const ConvertOptions& options, const std::filesystem::path& data, const std::filesystem::path& to) {
  if (options.max_side < 0 || options.max_side > kLongestSide) {
    throw ConfigError("a longest side of " + std::to_string(options.max_side) + " pixels",
                      "it is 1 to " + std::to_string(kLongestSide) + ", or 0 to keep every image's size");
  }
  if (options.quality < 0 || options.quality > 100) {
    throw ConfigError("a JPEG quality of " + std::to_string(options.quality),
                      "it is 1 to 100, or 0 to keep the bytes of the images");
  }
  if (options.threads < 0) throw ConfigError("threads = " + std::to_string(options.threads) + " is negative");
  if (path_kind(to) == PathKind::kDirectory) {
    throw ConfigError(to.string() + " is a folder", "name the file that the records go to");
  }
  if (would_overwrite(to, data)) {
    throw ConfigError(to.string() + " is one of the files that are read, and would be overwritten",
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
    throw DataError(error.code(),
                    "the " + std::string(split == Split::kTrain ? "train" : "test") + " split: " + error.message(),
                    error.location(), "complete the data, or convert the other split alone");
  }
}

std::vector<Part> open_parts(const std::filesystem::path& data, const ConvertOptions& options,
                             ConvertResult& result) {
  if (options.split)
    return {{.split = *options.split, .source = open_source(data, *options.split, options.source)}};
  std::vector<Part> parts;
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

RecordFileHeader header_of(const std::vector<Part>& parts, const ConvertOptions& options) {
  const SourceInfo& first = parts.front().source->info();
  RecordFileHeader header{.fields = first.fields, .classes = first.classes, .splits = {}};
  for (const Part& part : parts) {
    const SourceInfo& info = part.source->info();
    if (info.fields != first.fields || info.classes != first.classes) {
      throw ConfigError(info.name + ": train and test differ in their fields or classes",
                        "convert one split alone");
    }
    header.splits.push_back({.split = part.split, .records = info.records, .origin = info.fingerprint});
  }
  const bool encoded =
      std::ranges::any_of(first.fields, [](const Field& f) { return f.encoding == Encoding::kImage; });
  if (!encoded && !RecodeOptions{.max_side = options.max_side, .quality = options.quality}.changes_nothing()) {
    throw ConfigError(first.name + ": its images are raw pixels, which are stored as they are",
                      "leave out the longest side and the quality");
  }
  return header;
}

// The record's own name; nothing where the source only numbers its records.
std::string name_of(const Source& source, std::uint64_t record) {
  std::string name = source.describe(record);
  return name == source.info().name + "[" + std::to_string(record) + "]" ? std::string() : name;
}

// One record as it will be written, or why it cannot be.
struct Packed {
  std::array<std::vector<std::byte>, kMaxFields> bytes;
  std::exception_ptr error;
};

// What one thread makes records with.
class Packer {
 public:
  explicit Packer(const RecodeOptions& options) : recoder_(options) {}

  void pack(const Source& source, std::uint64_t record, Packed& to) {
    to.error = nullptr;
    try {
      const RecordView view = source.read(record, scratch_);
      const Fields& fields = source.info().fields;
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto bytes =
            fields[i].encoding == Encoding::kImage ? recode(source, record, view.fields[i]) : view.fields[i];
        to.bytes[i].assign(bytes.begin(), bytes.end());
      }
    } catch (...) {
      to.error = std::current_exception();
    }
  }

 private:
  std::span<const std::byte> recode(const Source& source, std::uint64_t record, std::span<const std::byte> image) {
    try {
      return recoder_.recode(image);
    } catch (const Error& error) {
      throw DataError(error.code(), source.describe(record) + ": " + error.message(),
                      {.source = source.info().name, .record = record}, error.hint());
    }
  }

  ImageRecoder recoder_;
  std::vector<std::byte> scratch_;
};

// Makes a few records for each thread at a time, then writes them in order: what is written depends on no thread.
class Packing {
 public:
  Packing(RecordFileWriter& writer, const ConvertOptions& options) : writer_(writer) {
    const RecodeOptions recode{.max_side = options.max_side, .quality = options.quality};
    // Copying bytes is the disk's work: more threads would wait for it.
    const int threads = recode.changes_nothing() ? 1
                        : options.threads > 0
                            ? options.threads
                            : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (int i = 0; i < threads; ++i) packers_.emplace_back(recode);
    records_.resize(packers_.size() * kRecordsAThread);
  }

  template <typename Done>
  void pack(const Source& source, const Done& done) {
    const std::uint64_t records = source.info().records;
    for (std::uint64_t first = 0; first < records; first += records_.size()) {
      const std::uint64_t count = std::min<std::uint64_t>(records_.size(), records - first);
      make(source, first, count);
      for (std::uint64_t i = 0; i < count; ++i) {
        write(source, first + i, records_[i]);
        done();
      }
    }
  }

 private:
  static constexpr std::size_t kRecordsAThread = 16;

  void make(const Source& source, std::uint64_t first, std::uint64_t count) {
    std::atomic<std::uint64_t> next{0};
    const auto work = [&](Packer& packer) {
      for (std::uint64_t i = 0; (i = next.fetch_add(1)) < count;) packer.pack(source, first + i, records_[i]);
    };
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < packers_.size(); ++i) helpers.emplace_back(work, std::ref(packers_[i]));
    work(packers_.front());
  }

  void write(const Source& source, std::uint64_t record, const Packed& packed) {
    if (packed.error) std::rethrow_exception(packed.error);
    RecordView view;
    std::ranges::copy(packed.bytes, view.fields.begin());
    writer_.append(view, name_of(source, record));
  }

  RecordFileWriter& writer_;
  std::vector<Packer> packers_;
  std::vector<Packed> records_;
};

}  // namespace

ConvertResult convert_dataset(const std::filesystem::path& data, const std::filesystem::path& to,
                              const ConvertOptions& options) {
  check(options, data, to);
  auto file = std::make_unique<FileWriter>(to);  // before the work: it may not be writable
  ConvertResult result;
  const std::vector<Part> parts = open_parts(data, options, result);
  result.left_out = parts.front().source->info().left_out;
  RecordFileHeader header = header_of(parts, options);
  const std::uint64_t records = header.records();
  RecordFileWriter writer(std::move(file), std::move(header));
  Packing packing(writer, options);
  for (const Part& part : parts) {
    packing.pack(*part.source, [&] {
      ++result.records;
      if (options.progress) options.progress(result.records, records);
    });
  }
  result.bytes = writer.finish();
  return result;
}

}  // namespace headrace
