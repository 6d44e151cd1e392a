// Archives in WebDataset's naming as a stream of shards: nothing is listed before it is read.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/cell_classes.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/members/record_parts.h"
#include "headrace/pipeline/sources/records/file_shards.h"
#include "headrace/pipeline/sources/records/web_samples.h"

namespace headrace {
namespace {

// Files of the first archive that are looked at when it is opened, if members of samples are to be learned from.
constexpr int kShardLearnedFrom = 96;

bool is_image(const ArchiveFile& member) { return is_image_extension(split_member_name(member.path).extension); }

// The first files of an archive: so many, or until one is an image.
class FirstFiles final : public ArchiveFiles {
 public:
  FirstFiles(std::unique_ptr<ArchiveFiles> files, int count, bool until_image)
      : files_(std::move(files)), left_(count), until_image_(until_image) {}

  std::optional<ArchiveFile> next() override {
    if (left_-- <= 0) return std::nullopt;
    std::optional<ArchiveFile> file = files_->next();
    if (file && until_image_ && is_image(*file)) left_ = 0;
    return file;
  }
  void read(std::span<std::byte> into) override { files_->read(into); }
  bool has_positions() const noexcept override { return files_->has_positions(); }
  // Returns whether there may be others.
  bool is_cut() const noexcept { return left_ < 0; }

 private:
  std::unique_ptr<ArchiveFiles> files_;
  int left_;
  bool until_image_;
};

// The further members of a sample that was read.
class ReadMembers final : public SampleMembers {
 public:
  explicit ReadMembers(const WebSample& sample) : sample_(sample) {}

  std::optional<std::uint64_t> size(std::size_t member) const override {
    const WebMember& one = sample_.further[member];
    return one.is_missing() ? std::nullopt : std::optional(one.place.size);
  }
  std::span<const std::byte> kept(std::size_t /*member*/) const override { return {}; }
  void read(std::size_t member, std::span<std::byte> into) const override {
    std::ranges::copy(sample_.further[member].bytes, into.begin());
  }

 private:
  const WebSample& sample_;
};

class WebShards final : public FileShards {
 public:
  WebShards(std::string name, FoundShards shards, const WebDatasetOptions& options);

  std::unique_ptr<ShardReader> open_shard(std::size_t shard, std::uint64_t offset) const override;
  std::unique_ptr<ShardReader> open_part(std::size_t shard, const ByteExtent& part) const override;

 private:
  class Reader;

  void look_at_first(std::uint64_t memory_limit);
  void settle_classes();
  std::uint64_t fingerprint() const;

  MemberFields fields_;
  WebMembers roles_;
  CellClasses classes_;  // of LabelType::kClass
  std::uint64_t memory_limit_;
  bool has_labels_ = true;
};

// One archive, sample after sample.
class WebShards::Reader final : public ShardReader {
 public:
  // `open` returns the archive's files, of its path.
  template <typename Open>
  Reader(const WebShards& set, std::size_t shard, const Open& open)
      : set_(set), name_(set.files_.path(shard).string()) {
    in_shard(name_, [&] {
      files_ = open(set.files_.path(shard));
      member_ = files_->next();
    });
  }

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    kept_ = 0;
    const KeepMember keep = [this](ArchiveFiles& files, const ArchiveFile& member) { return read(files, member); };
    std::optional<WebSample> sample;
    in_shard(name_, [&] { sample = read_next_sample(*files_, keep, set_.roles_, member_); });
    if (!sample) return std::nullopt;
    const std::string& fault = set_.has_labels_ ? sample->fault_with_label() : sample->fault;
    if (!fault.empty()) fail(*sample, fault);
    const auto is_image = [&](const auto& bytes) { return bytes.data() == sample->bytes.data(); };
    const auto image = std::ranges::find_if(read_, is_image);
    if (image != read_.end()) image->swap(buffer);
    RecordParts parts(buffer);
    parts.keep_first(std::span(buffer).first(static_cast<std::size_t>(sample->place.size)));
    if (set_.has_labels_) put_label(*sample, parts);
    try {
      set_.fields_.read(ReadMembers(*sample), set_.has_labels_ ? 2 : 1, parts);
    } catch (const Error& error) {
      fail(*sample, fmt::format("{}: {}", sample->image, error.message()));
    }
    return parts.view();
  }
  void read_ahead(std::uint64_t bytes_before) override { files_->read_ahead(bytes_before); }
  std::uint64_t offset() const noexcept override {
    if (!member_) return kEnd;
    return files_->has_positions() ? member_->header : 0;
  }

 private:
  [[noreturn]] void fail(const WebSample& sample, const std::string& fault) const {
    throw DataError(ErrorCode::kDataCorrupt, fault, {.source = name_, .offset = sample.place.offset},
                    "each sample needs its image, its label and its members right beside each other");
  }

  // Returns the bytes, in memory that is used again for the next sample.
  std::span<const std::byte> read(ArchiveFiles& files, const ArchiveFile& member) {
    if (member.place.size > set_.memory_limit_) {
      throw Error(ErrorCode::kOutOfMemory,
                  fmt::format("{}: '{}' has {} bytes; {} may be kept", name_, member.path, member.place.size,
                              set_.memory_limit_),
                  advice("raise {}", named("WebDatasetOptions::memory_limit")));
    }
    if (kept_ == read_.size()) read_.emplace_back();
    std::vector<std::byte>& bytes = read_[kept_++];
    const auto size = static_cast<std::size_t>(member.place.size);
    if (bytes.size() < std::max<std::size_t>(size, 1)) bytes.resize(std::max<std::size_t>(size, 1));
    files.read(std::span(bytes).first(size));
    return std::span(bytes).first(size);
  }

  void put_label(const WebSample& sample, RecordParts& parts) const {
    std::int64_t label = sample.label;
    if (set_.roles_.label_type == LabelType::kNumber) {
      const auto number = std::as_bytes(std::span(&sample.number, 1));
      std::ranges::copy(number, parts.room(1, number.size()).begin());
      return;
    }
    if (set_.roles_.label_type == LabelType::kClass) {
      const std::optional<std::int64_t> number = set_.classes_.number_of(sample.class_name);
      if (!number) {
        fail(sample, fmt::format("'{}' is of the class '{}', which is none of those named", sample.image,
                                 sample.class_name));
      }
      label = *number;
    }
    const auto bytes = std::as_bytes(std::span(&label, 1));
    std::ranges::copy(bytes, parts.room(1, bytes.size()).begin());
  }

  const WebShards& set_;
  std::string name_;
  std::unique_ptr<ArchiveFiles> files_;
  std::optional<ArchiveFile> member_;         // the first of the next sample
  std::vector<std::vector<std::byte>> read_;  // members of the latest sample
  std::size_t kept_ = 0;                      // of these, in use
};

WebShards::WebShards(std::string name, FoundShards shards, const WebDatasetOptions& options)
    : FileShards(name, std::move(shards)),
      fields_(options.members, name),
      roles_(web_members({.image_column = options.image_member,
                          .label_column = options.label_member,
                          .columns = options.members,
                          .label_type = options.label_type},
                         fields_.extensions(), name)),
      memory_limit_(options.memory_limit) {
  info_.classes = options.classes;
  info_.label_count = options.label_count;
  settle_classes();
  look_at_first(options.memory_limit);
  info_.fields = labelled_image_fields();
  if (roles_.label_type == LabelType::kNumber) info_.fields.back().dtype = DType::kF32;
  if (!has_labels_) info_.fields.pop_back();
  fields_.add_to(info_.fields);
  info_.fingerprint = fingerprint();
}

// Names can be numbered only once all are known.
void WebShards::settle_classes() {
  const std::string option = named("SourceOptions::indexed", "false");
  if (fields_.samples_to_learn_from(kUnknownRecords) == kUnknownRecords) {
    throw ConfigError(
        fmt::format("{}: {}: the classes of a member are numbered when all samples are known", info_.name, option),
        "take the member along as text, or leave out the option");
  }
  if (roles_.label_type != LabelType::kClass) return;
  if (info_.classes.empty()) {
    throw ConfigError(
        fmt::format("{}: {}: classes are numbered when all samples are known", info_.name, option),
        joined({advice("name them with {}", named("WebDatasetOptions::classes")), "leave out the option"}));
  }
  classes_.settle(info_.classes);
}

// Learns from the first archive that has samples what fields there are. Images are left where they are.
void WebShards::look_at_first(std::uint64_t memory_limit) {
  const remote::Hold hold;
  std::optional<remote::Look> look;
  if (fields_.empty()) look.emplace();
  std::vector<std::string> seen;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    ByteSlabs slabs = slabs_for(0);
    const auto keep = [&](ArchiveFiles& files, const ArchiveFile& member) -> std::span<const std::byte> {
      if (is_image(member)) return {};
      const auto size = static_cast<std::size_t>(member.place.size);
      const std::span<std::byte> bytes = slabs.allocate(std::max<std::size_t>(size, 1)).first(size);
      files.read(bytes);
      return bytes;
    };
    // What no field is learned from may end before another image's header: behind a network, a round trip away.
    FirstFiles files(list_archive(files_.path(file), memory_limit), kShardLearnedFrom, fields_.empty());
    std::vector<WebSample> samples = read_web_samples(files_.path(file).string(), files, keep, roles_, seen);
    if (samples.size() > 1 && files.is_cut()) samples.pop_back();  // the rest of its members may follow
    if (samples.empty()) continue;
    if (!fields_.empty()) {
      const auto is_labelled = [](const WebSample& sample) { return sample.label_fault.empty(); };
      has_labels_ = roles_.named || std::ranges::any_of(samples, is_labelled);
      for (const WebSample& sample : samples) fields_.learn(ReadMembers(sample));
      fields_.settle(seen);
    }
    return;
  }
  throw DataError(ErrorCode::kDataCorrupt, "has no sample in it", {.source = info_.name});
}

std::uint64_t WebShards::fingerprint() const {
  Fingerprint fingerprint = fingerprint_of("web shards 1");
  for (const std::string& one : info_.classes) fingerprint.add(one);
  fingerprint.add(roles_.image).add(roles_.label);
  if (roles_.json) {
    fingerprint.add(roles_.json->extension);
    for (const std::string& key : roles_.json->keys) fingerprint.add(key);
  }
  for (const std::string& member : roles_.further) fingerprint.add(member);
  for (const Field& field : info_.fields) fingerprint.add(field);
  return fingerprint.value();
}

std::unique_ptr<ShardReader> WebShards::open_shard(std::size_t shard, std::uint64_t offset) const {
  return std::make_unique<Reader>(*this, shard, [&](const std::filesystem::path& path) {
    return offset > 0 ? list_tar_from(path, offset) : list_archive(path, memory_limit_);
  });
}

std::unique_ptr<ShardReader> WebShards::open_part(std::size_t shard, const ByteExtent& part) const {
  if (part.size == files_.bytes(shard)) return open_shard(shard, 0);  // it may be compressed
  return std::make_unique<Reader>(*this, shard, [&](const std::filesystem::path& path) {
    return list_tar_part(path, part.offset, files_.read(shard, part));
  });
}

}  // namespace

SourcePtr web_shards(std::string name, FoundShards shards, const WebDatasetOptions& options) {
  return std::make_shared<WebShards>(std::move(name), std::move(shards), options);
}

}  // namespace headrace
