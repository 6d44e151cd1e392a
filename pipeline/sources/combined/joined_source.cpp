#include "headrace/pipeline/sources/combined/combined_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

constexpr std::size_t kPartAlignment = 16;

bool lies_in(std::span<const std::byte> bytes, const std::vector<std::byte>& buffer) {
  return !bytes.empty() && bytes.data() >= buffer.data() && bytes.data() < buffer.data() + buffer.size();
}

// Gathers the scratch bytes of several sources in one buffer.
class Gatherer {
 public:
  explicit Gatherer(std::vector<std::byte>& buffer) : buffer_(buffer) {}

  // Adds a field; copies its bytes if they are in `temporary`.
  void add(std::span<const std::byte> bytes, const std::vector<std::byte>& temporary) {
    Place place{.outside = bytes, .offset = 0, .size = bytes.size(), .inside = lies_in(bytes, temporary)};
    if (place.inside) {
      place.offset = used_;
      if (buffer_.size() < used_ + bytes.size()) buffer_.resize(used_ + bytes.size());
      std::memcpy(buffer_.data() + used_, bytes.data(), bytes.size());
      used_ += (bytes.size() + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    }
    places_[count_++] = place;
  }

  RecordView view() const {
    RecordView view;
    for (std::size_t i = 0; i < count_; ++i) {
      view.fields[i] = places_[i].inside
                           ? std::span<const std::byte>(buffer_).subspan(places_[i].offset, places_[i].size)
                           : places_[i].outside;
    }
    return view;
  }

 private:
  struct Place {
    std::span<const std::byte> outside;
    std::size_t offset = 0, size = 0;
    bool inside = false;
  };

  std::vector<std::byte>& buffer_;
  std::size_t used_ = 0;
  std::size_t count_ = 0;
  PerField<Place> places_;
};

}  // namespace

JoinedSource::JoinedSource(std::vector<JoinedPart> parts, const ZipOptions& options) : parts_(std::move(parts)) {
  Fingerprint fingerprint("zip 1"), revision("");
  info_.resident = true;
  bool in_files = false;
  info_.records = parts_.front().size;
  for (const JoinedPart& part : parts_) {
    const SourceInfo& info = part.source->info();
    info_.records = std::min(info_.records, part.size);
    info_.resident = info_.resident && info.resident;
    if (info_.classes.empty()) info_.classes = info.classes;
    info_.name += (info_.name.empty() ? "" : " and ") + info.name;
    fingerprint.add(info.fingerprint).add(part.fingerprint).add(part.size);
    revision.add(info.revision.value_or(0));
    in_files = in_files || info.revision.has_value();
    info_.anonymous = info_.anonymous || info.anonymous;
    info_.reading += (info_.reading.empty() ? "" : "; and ") + describe_reading(*part.source);
  }
  if (options.strict) {
    require_equal_lengths();
    require_paired_names(parts_);
  }
  name_fields(options);
  for (const Field& field : info_.fields) fingerprint.add(field);
  info_.fingerprint = fingerprint.value();
  if (in_files) info_.revision = revision.value();
}

void JoinedSource::require_equal_lengths() const {
  const auto shorter = std::ranges::min_element(parts_, {}, &JoinedPart::size);
  const auto longer = std::ranges::max_element(parts_, {}, &JoinedPart::size);
  if (shorter->size == longer->size) return;
  throw ConfigError(
      fmt::format("zip(): {} of {} and {} of {}", count_of(longer->size, "record"), longer->source->info().name,
                  shorter->size, shorter->source->info().name),
      joined({"complete the data", advice("end with the shortest: {}", named("ZipOptions::strict", "false"))}));
}

void JoinedSource::name_fields(const ZipOptions& options) {
  if (!options.suffixes.empty() && options.suffixes.size() != parts_.size()) {
    throw ConfigError(fmt::format("zip(): {} suffixes for {} datasets", options.suffixes.size(), parts_.size()),
                      "give one suffix a dataset, an empty one where names shall stay");
  }
  std::map<std::string, int> uses;
  for (const JoinedPart& part : parts_) {
    for (const Field& field : fields_of(part)) ++uses[field.name];
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (Field field : fields_of(parts_[i])) {
      if (uses[field.name] > 1 && !options.suffixes.empty()) field.name += options.suffixes[i];
      for (const Field& other : info_.fields) {
        if (other.name != field.name) continue;
        throw ConfigError(fmt::format("zip(): two datasets have a field '{}'", field.name),
                          fmt::format("tell them apart with {}: one a dataset, as '' and '_2'",
                                      named_or("ZipOptions::suffixes", "\"suffixes\"")));
      }
      info_.fields.push_back(std::move(field));
    }
  }
  std::size_t read = 0;
  for (const JoinedPart& part : parts_) read += part.source->info().fields.size();
  if (const std::size_t fields = std::max(read, info_.fields.size()); fields > kMaxFields) {
    throw ConfigError(fmt::format("zip(): {} fields together; a record has at most {}", fields, kMaxFields));
  }
}

RecordView JoinedSource::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  Gatherer gathered(scratch);
  for (const JoinedPart& part : parts_) {
    BorrowedBytes own;
    const RecordView view = part.source->read(record_of(part, index), *own);
    for (std::size_t i = 0; i < part.source->info().fields.size(); ++i) gathered.add(view.fields[i], *own);
  }
  return gathered.view();
}

void JoinedSource::will_read(std::span<const std::uint64_t> records) const {
  for (const JoinedPart& part : parts_) {
    std::vector<std::uint64_t> those;
    for (const std::uint64_t record : records) those.push_back(record_of(part, record));
    part.source->will_read(those);
  }
}

std::string JoinedSource::describe(std::uint64_t index) const {
  std::string text;
  for (const JoinedPart& part : parts_) {
    text += (text.empty() ? "" : " + ") + part.source->describe(record_of(part, index));
  }
  return text;
}

}  // namespace headrace
