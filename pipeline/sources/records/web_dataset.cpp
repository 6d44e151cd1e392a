// Archives in WebDataset's naming: plain tars and zips are read by position, compressed tars lie unpacked in
// memory.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/open_archive.h"
#include "headrace/pipeline/sources/archives/stored_file.h"
#include "headrace/pipeline/sources/cell_classes.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/members/record_parts.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/pipeline/sources/side_by_side.h"

namespace headrace {
namespace {

ColumnOptions columns_of(const WebDatasetOptions& options) {
  return {.image_column = options.image_member,
          .label_column = options.label_member,
          .columns = options.members,
          .label_type = options.label_type};
}

std::string hint_without_label(const WebMembers& roles) {
  if (!roles.image.empty() || roles.named) return "each sample needs its image and its label";
  return "each image needs key.cls, or a \"label\" in key.json";
}

const char* held_by(const std::string& extension) {
  if (is_image_extension(extension)) return "an image";
  if (extension == "json" || extension.ends_with(".json")) return "JSON";
  if (extension == "npy" || extension.ends_with(".npy")) return "an array";
  return extension == "cls" ? "an integer" : extension == "txt" ? "text" : "bytes";
}

class WebDataset final : public Source {
 public:
  WebDataset(std::string name, FoundShards shards, const WebDatasetOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return images_[index].place.offset; }
  std::string describe(std::uint64_t index) const override;  // "shard-0.tar/0007.jpg"

 private:
  struct Image {
    StoredFile place;
    const std::byte* bytes;  // its position in memory; else null
  };
  class Further;   // the members of a record that are taken along
  struct Archive;  // what was found in one

  [[noreturn]] void fail_without_samples() const;
  // Thread-safe.
  bool has_room(std::uint64_t bytes, std::uint64_t limit);
  Archive read_archive(std::size_t file, std::uint64_t memory_limit);
  void add_archive(Archive archive);
  void add_sample(WebSample sample);
  // Decides whether records have labels, and numbers their classes.
  void settle_labels();
  void learn_fields();
  void describe_columns();
  void take_fingerprint();
  DataError cannot_read(std::uint64_t index, const DataError& error) const;
  std::span<const std::byte> label_of(std::uint64_t index) const noexcept;
  std::vector<ByteExtent> extents_of(std::uint64_t record, bool with_image) const;
  void announce(std::span<const std::uint64_t> records, bool with_images) const;
  std::size_t file_of(std::uint64_t index) const noexcept;

  ShardFiles files_;
  MemberFields fields_;
  WebMembers roles_;
  std::vector<ByteSlabs> slabs_;  // of packed archives
  std::atomic<std::uint64_t> in_memory_{0};
  SampleTable table_;
  std::vector<Image> images_;
  std::vector<Image> members_;                       // by record, as MemberFields::extensions()
  std::map<std::uint64_t, std::string> faults_;      // of unusable samples, by record
  std::map<std::uint64_t, std::string> unlabelled_;  // samples without a label, and why; empty: it is missing
  std::vector<float> numbers_;                       // labels of LabelType::kNumber, by record
  std::vector<std::string> class_names_;             // of LabelType::kClass, by record
  std::vector<std::string> seen_;                    // the members' extensions
  bool has_labels_ = true;
  SourceInfo info_;
};

class WebDataset::Further final : public SampleMembers {
 public:
  Further(const WebDataset& set, std::uint64_t record) : set_(set), record_(record) {}

  std::optional<std::uint64_t> size(std::size_t member) const override {
    const StoredFile& place = at(member).place;
    if (place.offset == WebMember::kMissing) return std::nullopt;
    if (place.size <= kMaxMember) return place.size;
    throw Error(ErrorCode::kDataCorrupt, fmt::format("member '{}' has {} bytes; {} can be taken along",
                                                     set_.fields_.extensions()[member], place.size, kMaxMember));
  }
  std::span<const std::byte> kept(std::size_t member) const override {
    const Image& image = at(member);
    if (image.bytes == nullptr) return {};
    return {image.bytes, static_cast<std::size_t>(image.place.size)};
  }
  void read(std::size_t member, std::span<std::byte> into) const override {
    const std::size_t file = set_.file_of(record_);
    const ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> bytes) {
      set_.files_.read_exact(file, offset, bytes);
    };
    read_stored(at(member).place, set_.info_.name, read_at, into);
  }

 private:
  static constexpr std::uint64_t kMaxMember = std::uint64_t{1} << 30;

  const Image& at(std::size_t member) const {
    return set_.members_[static_cast<std::size_t>(record_) * set_.fields_.extensions().size() + member];
  }

  const WebDataset& set_;
  std::uint64_t record_;
};

struct WebDataset::Archive {
  std::vector<WebSample> samples = {};
  ByteSlabs slabs = ByteSlabs();
  std::vector<std::string> seen = {};  // extensions
  std::uint64_t links_out = 0;
  bool packed = false;
};

WebDataset::WebDataset(std::string name, FoundShards shards, const WebDatasetOptions& options)
    : files_(std::move(shards.paths)),
      fields_(options.members, name),
      roles_(web_members(columns_of(options), fields_.extensions(), name)) {
  info_.resident = true;
  info_.reading = std::move(shards.reading);
  info_.left_out = std::move(shards.left_out);
  std::uint64_t empty = 0;
  const remote::Hold hold;
  std::vector<std::optional<Archive>> archives(files_.size());
  read_side_by_side(
      files_.size(), files_.is_remote(),
      [&](std::size_t file) { archives[file] = read_archive(file, options.memory_limit); },
      [&](std::size_t file) {
        add_archive(*std::exchange(archives[file], std::nullopt));
        const std::uint64_t before = file == 0 ? 0 : info_.file_ends.back();
        empty += images_.size() == before ? 1 : 0;
        info_.file_ends.push_back(images_.size());
      });
  if (images_.empty()) throw DataError(ErrorCode::kDataCorrupt, "has no sample in it", {.source = name});
  if (empty > 0) info_.left_out.push_back({.what = empty == 1 ? "empty shard" : "empty shards", .files = empty});
  info_.name = std::move(name);
  info_.records = images_.size();
  info_.classes = options.classes;
  info_.label_count = options.label_count;
  settle_labels();
  if (faults_.size() == images_.size()) fail_without_samples();
  info_.resident = info_.resident && fields_.are_bytes();
  info_.fields = labelled_image_fields();
  if (roles_.label_type == LabelType::kNumber) info_.fields.back().dtype = DType::kF32;
  if (!has_labels_) info_.fields.pop_back();
  if (!fields_.empty()) learn_fields();
  describe_columns();
  take_fingerprint();
  info_.revision = files_.revision();
  table_.share();
}

void WebDataset::settle_labels() {
  has_labels_ = fields_.empty() || roles_.named || unlabelled_.size() < images_.size();
  if (!has_labels_) return unlabelled_.clear();
  for (auto& [record, fault] : unlabelled_) {
    if (fault.empty()) fault = fmt::format("'{}' has no label", table_.name(record));
    faults_.try_emplace(record, std::move(fault));
  }
  unlabelled_.clear();
  if (roles_.label_type != LabelType::kClass) return;
  CellClasses classes;
  if (info_.classes.empty()) {
    for (std::uint64_t i = 0; i < class_names_.size(); ++i) {
      if (!faults_.contains(i)) classes.add(class_names_[i]);
    }
    classes.settle(/*numeric=*/true);
    info_.classes = classes.names();
  } else {
    classes.settle(info_.classes);
  }
  SampleTable table;
  for (std::uint64_t i = 0; i < class_names_.size(); ++i) {
    const std::optional<std::int64_t> number = classes.number_of(class_names_[i]);
    if (!number) {
      faults_.try_emplace(i, fmt::format("'{}' is of the class '{}', which is none of those named", table_.name(i),
                                         class_names_[i]));
    }
    table.add(table_.name(i), number.value_or(0));
  }
  table_ = std::move(table);
  class_names_.clear();
  class_names_.shrink_to_fit();
}

void WebDataset::learn_fields() {
  std::vector<std::uint64_t> first;
  const std::uint64_t wanted = fields_.samples_to_learn_from(images_.size());
  for (std::uint64_t i = 0; i < images_.size() && first.size() < wanted; ++i) {
    if (!faults_.contains(i)) first.push_back(i);
  }
  const bool remote = files_.is_remote() && !fields_.are_bytes();
  for (std::size_t begin = 0; begin < first.size(); begin += kSamplesLearnedFrom) {
    const auto some = std::span(first).subspan(begin).first(std::min(first.size() - begin, kSamplesLearnedFrom));
    if (remote) announce(some, /*with_images=*/false);
    for (const std::uint64_t record : some) fields_.learn(Further(*this, record));
  }
  if (remote) files_.forget();
  fields_.settle(seen_);
  fields_.add_to(info_.fields);
}

void WebDataset::describe_columns() {
  const bool in_text = !roles_.label.empty() && std::ranges::count(seen_, roles_.label) > 0;
  std::ranges::sort(seen_);
  for (const std::string& extension : seen_) {
    const bool image = roles_.image.empty() ? extension == "jpg" || extension == "jpeg" || extension == "png"
                                            : extension == roles_.image;
    std::string field = fields_.field_of(extension);
    if (field.empty() && image) field = "image";
    const bool label = in_text ? extension == roles_.label : roles_.json && extension == roles_.json->extension;
    if (label && has_labels_) field = field.empty() ? "label" : "label, " + field;
    info_.columns.push_back({.name = extension, .holds = held_by(extension), .field = std::move(field)});
  }
}

void WebDataset::take_fingerprint() {
  Fingerprint fingerprint("web dataset 1");
  table_.add_to(fingerprint);
  for (const std::string& one : info_.classes) fingerprint.add(one);
  for (const auto& [record, fault] : faults_) fingerprint.add(record).add(fault);
  const auto add = [&](const Image& image) {
    const StoredFile& place = image.place;
    fingerprint.add(place.size);
    if (place.kind != StoredFile::Kind::kPlain) fingerprint.add(std::uint64_t{place.crc});
    if (image.bytes != nullptr) fingerprint.add(std::span(image.bytes, static_cast<std::size_t>(place.size)));
  };
  for (const Image& image : images_) add(image);
  for (const Image& member : members_) add(member);
  if (!numbers_.empty()) fingerprint.add(std::as_bytes(std::span(numbers_)));
  if (!has_labels_) fingerprint.add("no labels");
  if (!fields_.empty()) {
    for (const Field& field : info_.fields) fingerprint.add(field);
    fields_.add_classes_to(fingerprint);
  }
  info_.fingerprint = fingerprint.value();
}

void WebDataset::fail_without_samples() const {
  const auto& [record, fault] = *faults_.begin();
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("none of its {} samples can be used; the first: {}", images_.size(), fault),
                  {.source = files_.path(file_of(record)).string(), .offset = images_[record].place.offset},
                  hint_without_label(roles_));
}

// Counts bytes of a packed archive, up to the limit. Once one was refused all are.
bool WebDataset::has_room(std::uint64_t bytes, std::uint64_t limit) {
  return bytes <= limit && in_memory_.fetch_add(bytes) + bytes <= limit;
}

WebDataset::Archive WebDataset::read_archive(std::size_t file, std::uint64_t memory_limit) {
  const std::string name = files_.path(file).string();
  const std::unique_ptr<ArchiveFiles> members = open_archive(files_.path(file), memory_limit);
  Archive archive{.slabs = slabs_for(files_.bytes(file)), .packed = !members->has_positions()};
  const auto keep = [&](ArchiveFiles& from, const ArchiveFile& member) -> std::span<const std::byte> {
    if (!archive.packed) return {};
    if (!has_room(member.place.size, memory_limit)) {
      throw DataError(ErrorCode::kOutOfMemory,
                      fmt::format("the images do not fit into {} MiB of memory", memory_limit >> 20),
                      {.source = name, .offset = member.place.offset},
                      "unpack it to a plain .tar, which is read from the disk, or raise memory_limit");
    }
    const auto size = static_cast<std::size_t>(member.place.size);
    const std::span<std::byte> bytes =
        archive.slabs.allocate(std::max<std::size_t>(size, 1)).first(size);  // not null
    from.read(bytes);
    return bytes;
  };
  archive.samples = read_web_samples(name, *members, keep, roles_, archive.seen);
  archive.links_out = members->links_out();
  return archive;
}

void WebDataset::add_archive(Archive archive) {
  info_.resident = info_.resident && archive.packed;
  for (WebSample& sample : archive.samples) add_sample(std::move(sample));
  if (archive.packed) slabs_.push_back(std::move(archive.slabs));
  add_links_out(archive.links_out, info_.left_out);
  for (std::string& extension : archive.seen) {
    if (std::ranges::count(seen_, extension) == 0) seen_.push_back(std::move(extension));
  }
}

void WebDataset::add_sample(WebSample sample) {
  const std::uint64_t record = images_.size();
  if (!sample.fault.empty()) faults_[record] = std::move(sample.fault);
  if (!sample.label_fault.empty()) {
    // Where no sample has a label, a reason for each would be memory for nothing.
    const bool may_lack = !fields_.empty() && !roles_.named && unlabelled_.size() == record;
    unlabelled_.emplace_hint(unlabelled_.end(), record, may_lack ? std::string() : std::move(sample.label_fault));
  }
  table_.add(sample.image, sample.label);
  if (roles_.label_type == LabelType::kNumber) numbers_.push_back(sample.number);
  if (roles_.label_type == LabelType::kClass) class_names_.push_back(std::move(sample.class_name));
  images_.push_back({.place = sample.place, .bytes = sample.bytes.data()});
  for (const WebMember& member : sample.further) {
    members_.push_back({.place = member.place, .bytes = member.bytes.data()});
  }
}

std::size_t WebDataset::file_of(std::uint64_t index) const noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(info_.file_ends, index) - info_.file_ends.begin());
}

DataError WebDataset::cannot_read(std::uint64_t index, const DataError& error) const {
  return DataError(error.code(), "cannot read " + describe(index),
                   {.source = info_.name, .record = index, .offset = images_[index].place.offset},
                   error.message());
}

std::span<const std::byte> WebDataset::label_of(std::uint64_t index) const noexcept {
  if (numbers_.empty()) return table_.label(index);
  return std::as_bytes(std::span(&numbers_[index], 1));
}

RecordView WebDataset::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const Image& image = images_[index];
  if (const auto fault = faults_.find(index); fault != faults_.end()) {
    throw DataError(ErrorCode::kDataCorrupt, fault->second,
                    {.source = info_.name, .record = index, .offset = image.place.offset},
                    hint_without_label(roles_));
  }
  const auto size = static_cast<std::size_t>(image.place.size);
  const std::size_t file = file_of(index);
  const ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> into) {
    files_.read_exact(file, offset, into);
  };
  try {
    RecordParts parts(scratch);
    if (image.bytes != nullptr) {
      parts.keep(0, std::span(image.bytes, size));
    } else {
      parts.keep_first(read_stored_image(image.place, info_.name, read_at, scratch));
    }
    if (has_labels_) parts.keep(1, label_of(index));
    fields_.read(Further(*this, index), has_labels_ ? 2 : 1, parts);
    return parts.view();
  } catch (const DataError& error) {
    throw cannot_read(index, error);
  } catch (const Error& error) {
    throw DataError(error.code(), fmt::format("{}: {}", describe(index), error.message()),
                    {.source = info_.name, .record = index, .offset = image.place.offset}, error.hint());
  }
}

std::optional<std::int64_t> WebDataset::label(std::uint64_t index) const noexcept {
  if (!has_labels_ || !numbers_.empty() || faults_.contains(index)) return std::nullopt;
  return table_.label_value(index);
}

std::vector<ByteExtent> WebDataset::extents_of(std::uint64_t record, bool with_image) const {
  std::vector<ByteExtent> extents;
  if (with_image && images_[record].bytes == nullptr) extents.push_back(extent_of(images_[record].place));
  const std::size_t count = fields_.extensions().size();
  for (std::size_t i = 0; i < count; ++i) {
    const Image& member = members_[static_cast<std::size_t>(record) * count + i];
    const bool missing = member.place.offset == WebMember::kMissing;
    if (!missing && member.bytes == nullptr) extents.push_back(extent_of(member.place));
  }
  return extents;
}

void WebDataset::announce(std::span<const std::uint64_t> records, bool with_images) const {
  std::map<std::size_t, std::vector<ByteExtent>> extents;  // by file
  for (const std::uint64_t record : records) {
    std::vector<ByteExtent>& of_file = extents[file_of(record)];
    for (const ByteExtent& extent : extents_of(record, with_images)) of_file.push_back(extent);
  }
  for (const auto& [file, those] : extents) {
    if (!those.empty()) files_.will_read(file, those);
  }
}

void WebDataset::will_read(std::span<const std::uint64_t> records) const {
  if (info_.resident || !files_.is_remote()) return;
  if (records.empty()) return files_.forget();
  announce(records, /*with_images=*/true);
}

std::string WebDataset::describe(std::uint64_t index) const {
  std::string name(table_.name(index));
  return files_.size() == 1 ? name : files_.path(file_of(index)).filename().string() + "/" + name;
}

SourcePtr opened_web(std::string name, FoundShards shards, const WebDatasetOptions& options) {
  if (!options.indexed) return web_shards(std::move(name), std::move(shards), options);
  return std::make_shared<WebDataset>(std::move(name), std::move(shards), options);
}

}  // namespace

bool is_web_shard(const std::filesystem::path& path) {
  static const std::string kEndings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst"};
  if (has_ending(path, kEndings)) return true;
  const std::optional<ShardName> shard = parse_shard_name(path.filename().string());
  return shard && shard->ending.empty() && is_archive(path);
}

SourcePtr web_dataset(const std::filesystem::path& path, WebDatasetOptions options) {
  if (path_kind(path) != PathKind::kDirectory) return web_dataset(std::vector{path}, std::move(options));
  static const std::string kZip[] = {".zip"};
  FoundShards archives = find_shards(
      path, [](const auto& file) { return is_web_shard(file) || has_ending(file, kZip); }, options.split,
      options.layout);
  if (archives.paths.empty())
    throw DataError(ErrorCode::kNotFound, "has no .tar or .zip file", {.source = path.string()});
  return opened_by(WebDatasetCall{{{path}, options}}, opened_web(path.string(), std::move(archives), options));
}

SourcePtr web_dataset(std::vector<std::filesystem::path> archives, WebDatasetOptions options) {
  if (archives.empty()) throw ConfigError("web_dataset() was given no archives");
  std::string name = archives.front().string();
  if (archives.size() > 1) name += fmt::format(" and {} more", archives.size() - 1);
  WebDatasetCall call{{archives, options}};
  return opened_by(std::move(call), opened_web(std::move(name), {.paths = std::move(archives)}, options));
}

}  // namespace headrace
