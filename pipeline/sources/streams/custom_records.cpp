// Sources whose records a custom function makes: by number, one after another to be kept, or as a stream.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/streamed_source.h"

namespace headrace {
namespace {

constexpr std::size_t kRecordAlignment = 16;

// Returns the number of which a raw field's bytes must be a multiple, or, if its shape is fixed, exactly equal.
std::size_t unit_of(const Field& field) {
  const Shape one = field.shape.is_dynamic() ? field.shape.without_front() : field.shape;
  return static_cast<std::size_t>(one.elements()) * size_of(field.dtype);
}

bool size_fits(const Field& field, std::size_t bytes) {
  if (field.encoding == Encoding::kImage) return true;
  const std::size_t unit = unit_of(field);
  return field.shape.is_dynamic() ? unit != 0 && bytes % unit == 0 : bytes == unit;
}

// Throws ConfigError if a source `kind`(name) cannot be made.
void check_made_by_function(const std::string& kind, const std::string& name, const Fields& fields,
                            bool has_function) {
  if (!has_function) throw ConfigError(kind + "(" + name + ") has no function", "set function");
  if (fields.empty() || fields.size() > kMaxFields) {
    throw ConfigError(kind + "(" + name + ") has " + std::to_string(fields.size()) + " fields",
                      "a record has 1 to " + std::to_string(kMaxFields));
  }
}

// Returns the result of `call`; any exception becomes a DataError that says where.
template <typename Call>
auto with_user_code_errors(const std::string& kind, const DataLocation& at, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw DataError(error.code(), kind + ": " + error.message(), at, error.hint());
  } catch (const std::bad_alloc&) {
    throw DataError(ErrorCode::kOutOfMemory, kind + ": out of memory", at);  // not the record's fault
  } catch (const std::exception& error) {
    throw DataError(ErrorCode::kInvalidArgument, kind + ": " + error.what(), at);
  }
}

// Records that a custom function makes, each by its number.
class Generator final : public Source {
 public:
  explicit Generator(GeneratorOptions options) : function_(std::move(options.function)) {
    info_.name = std::move(options.name);
    info_.records = options.records;
    info_.fields = std::move(options.fields);
    info_.classes = std::move(options.classes);
    info_.anonymous = options.anonymous || options.fingerprint == 0;
    Fingerprint fingerprint("generator 1");
    fingerprint.add(options.fingerprint).add(info_.records);
    for (const Field& field : info_.fields) fingerprint.add(field);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    info_.fingerprint = fingerprint.value();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    RecordWriter writer(info_.fields, scratch);
    return with_user_code_errors("generator", {.source = info_.name, .record = index}, [&] {
      function_(index, writer);
      return writer.view();
    });
  }

  std::string describe(std::uint64_t index) const override {
    return info_.name + "[" + std::to_string(index) + "]";
  }

 private:
  std::function<void(std::uint64_t, RecordWriter&)> function_;
  SourceInfo info_;
};

// Records that a custom function gave one after another, kept in memory.
class Pulled final : public Source {
 public:
  explicit Pulled(PullOptions options) {
    info_.name = std::move(options.name);
    info_.fields = std::move(options.fields);
    info_.classes = std::move(options.classes);
    info_.resident = true;
    Fingerprint fingerprint("pulled 1");
    for (const Field& field : info_.fields) fingerprint.add(field);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    std::vector<std::byte> scratch;
    for (;; ++info_.records) {
      RecordWriter writer(info_.fields, scratch);
      if (!pull(options.function, writer)) break;
      keep(writer, options.memory_limit, fingerprint);
    }
    if (info_.records == 0) throw DataError(ErrorCode::kDataCorrupt, "gave no record", {.source = info_.name});
    info_.fingerprint = fingerprint.value();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& /*scratch*/) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    RecordView view;
    for (std::size_t i = 0; i < info_.fields.size(); ++i) {
      view.fields[i] = pieces_[static_cast<std::size_t>(index) * info_.fields.size() + i];
    }
    return view;
  }

  std::string describe(std::uint64_t index) const override { return fmt::format("{}[{}]", info_.name, index); }

 private:
  bool pull(const std::function<bool(RecordWriter&)>& function, RecordWriter& writer) const {
    return with_user_code_errors("pulled", {.source = info_.name, .record = info_.records},
                                 [&] { return function(writer); });
  }

  void keep(const RecordWriter& writer, std::uint64_t memory_limit, Fingerprint& fingerprint) {
    const RecordView view = with_user_code_errors("pulled", {.source = info_.name, .record = info_.records},
                                                  [&] { return writer.view(); });
    for (std::size_t i = 0; i < info_.fields.size(); ++i) {
      const std::span<const std::byte> bytes = view.fields[i];
      kept_ += bytes.size() + sizeof bytes;
      if (kept_ > memory_limit) {
        throw DataError(ErrorCode::kOutOfMemory,
                        fmt::format("gave more than the {} bytes that may be kept", memory_limit),
                        {.source = info_.name, .record = info_.records},
                        joined({advice("raise {}", named("PullOptions::memory_limit")),
                                advice("give the records by number: {}", named("generator()"))}));
      }
      const std::span<std::byte> place = slabs_.allocate(bytes.size());
      std::ranges::copy(bytes, place.begin());
      pieces_.emplace_back(place);
      fingerprint.add(bytes);
    }
  }

  SourceInfo info_;
  ByteSlabs slabs_;
  std::vector<std::span<const std::byte>> pieces_;  // of all records, field by field
  std::uint64_t kept_ = 0;
};

// The records that a custom function gives.
class CalledStream final : public RecordStream {
 public:
  CalledStream(const SourceInfo& info, std::function<bool(RecordWriter&)> function)
      : info_(info), function_(std::move(function)) {}

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    RecordWriter writer(info_.fields, buffer);
    if (!function_(writer)) return std::nullopt;
    return writer.view();
  }

 private:
  const SourceInfo& info_;  // of the source, which outlives its streams
  std::function<bool(RecordWriter&)> function_;
};

class CalledSource final : public StreamedSource {
 public:
  explicit CalledSource(StreamOptions options) : open_(std::move(options.open)) {
    info_.name = std::move(options.name);
    info_.fields = std::move(options.fields);
    info_.classes = std::move(options.classes);
    info_.label_count = options.label_count;
    Fingerprint fingerprint("stream 1");
    fingerprint.add(options.fingerprint);
    for (const Field& field : info_.fields) fingerprint.add(field);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    info_.fingerprint = fingerprint.value();
  }

  std::unique_ptr<RecordStream> open_stream(std::uint64_t first) const override {
    std::function<bool(RecordWriter&)> function = open_(first);
    if (!function) throw ConfigError(fmt::format("stream({}): open({}) gave no function", info_.name, first));
    return std::make_unique<CalledStream>(info_, std::move(function));
  }

 private:
  std::function<std::function<bool(RecordWriter&)>(std::uint64_t)> open_;
};

}  // namespace

std::span<std::byte> RecordWriter::allocate(std::size_t field, std::size_t bytes) {
  if (field >= fields_->size()) {
    throw ConfigError(fmt::format("field number {} was written; there are {}", field, fields_->size()));
  }
  const Field& of = (*fields_)[field];
  Place& place = places_[field];
  if (place.written) throw ConfigError(fmt::format("field '{}' was written twice", of.name));
  if (!size_fits(of, bytes)) {
    throw ConfigError(fmt::format("field '{}' of {} {} was given {} bytes", of.name, to_string(of.dtype),
                                  of.shape.to_string(), bytes));
  }
  place = {.offset = used_, .size = bytes, .written = true};
  used_ += (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
  if (buffer_->size() < used_) buffer_->resize(used_);
  return std::span(*buffer_).subspan(place.offset, bytes);
}

void RecordWriter::put(std::size_t field, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, allocate(field, bytes.size()).begin());
}

RecordView RecordWriter::view() const {
  RecordView view;
  for (std::size_t i = 0; i < fields_->size(); ++i) {
    if (!places_[i].written) throw ConfigError(fmt::format("field '{}' was not written", (*fields_)[i].name));
    view.fields[i] = std::span<const std::byte>(*buffer_).subspan(places_[i].offset, places_[i].size);
  }
  return view;
}

SourcePtr generator(GeneratorOptions options) {
  check_made_by_function("generator", options.name, options.fields, static_cast<bool>(options.function));
  if (options.records >= std::uint64_t{1} << 48) {
    throw ConfigError("generator(" + options.name + "): more records than can be numbered", "at most 2^48 - 1");
  }
  return std::make_shared<Generator>(std::move(options));
}

SourcePtr pulled(PullOptions options) {
  check_made_by_function("pulled", options.name, options.fields, static_cast<bool>(options.function));
  return std::make_shared<Pulled>(std::move(options));
}

SourcePtr record_stream(StreamOptions options) {
  check_made_by_function("stream", options.name, options.fields, static_cast<bool>(options.open));
  return std::make_shared<CalledSource>(std::move(options));
}

}  // namespace headrace
