#include "headrace/pipeline/sources/records/web_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

struct WebDatasetCall {
  static constexpr const char* kName = "web_dataset";

  std::vector<std::filesystem::path> paths = {};  // one: a file or a folder
  WebDatasetOptions options = {};

  void show(OptionVisitor& visit) {
    visit("path", paths);
    show_split(options.split, visit);
    visit("classes", options.classes);
    visit("label_count", options.label_count);
    visit("memory_limit", options.memory_limit);
  }
  SourcePtr open() const {
    return paths.size() == 1 ? web_dataset(paths.front(), options) : web_dataset(paths, options);
  }
};

}  // namespace

WebDataset::WebDataset(std::string name, std::vector<std::filesystem::path> archives,
                       const WebDatasetOptions& options)
    : files_(std::move(archives)) {
  info_.resident = true;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    add_archive(file, options.memory_limit);
    info_.file_ends.push_back(images_.size());
  }
  info_.name = std::move(name);
  if (faults_.size() == images_.size()) fail_without_samples();
  info_.records = images_.size();
  info_.fields = labelled_image_fields();
  info_.classes = options.classes;
  info_.label_count = options.label_count;
  Fingerprint fingerprint("web dataset 1");
  table_.add_to(fingerprint);
  for (const std::string& one : info_.classes) fingerprint.add(one);
  for (const auto& [record, fault] : faults_) fingerprint.add(record).add(fault);
  for (const Image& image : images_) {
    const StoredFile& place = image.place;
    fingerprint.add(place.size);
    if (place.kind != StoredFile::Kind::kPlain) fingerprint.add(std::uint64_t{place.crc});
    if (image.bytes != nullptr) fingerprint.add(std::span(image.bytes, static_cast<std::size_t>(place.size)));
  }
  info_.fingerprint = fingerprint.value();
  info_.revision = files_.revision();
}

void WebDataset::fail_without_samples() const {
  const auto& [record, fault] = *faults_.begin();
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("none of its {} samples can be used; the first: {}", images_.size(), fault),
                  {.source = files_.path(file_of(record)).string(), .offset = images_[record].place.offset},
                  "each image needs key.cls, or a \"label\" in key.json");
}

void WebDataset::add_archive(std::size_t file, std::uint64_t memory_limit) {
  const std::string archive = files_.path(file).string();
  const std::unique_ptr<ArchiveFiles> members = open_archive(files_.path(file), memory_limit);
  const bool packed = !members->has_positions();
  info_.resident = info_.resident && packed;
  const auto keep = [&](ArchiveFiles& from, const ArchiveFile& member) -> std::span<const std::byte> {
    if (!packed) return {};
    const DataLocation at{.source = archive, .offset = member.place.offset};
    if (member.place.size > memory_limit - in_memory_) {
      throw DataError(ErrorCode::kOutOfMemory,
                      fmt::format("the images do not fit into {} MiB of memory", memory_limit >> 20), at,
                      "unpack it to a plain .tar, which is read from the disk, or raise memory_limit");
    }
    in_memory_ += member.place.size;
    const std::span<std::byte> bytes = slabs_.allocate(static_cast<std::size_t>(member.place.size));
    from.read(bytes);
    return bytes;
  };
  for (const WebSample& sample : read_web_samples(archive, *members, keep)) {
    if (!sample.fault.empty()) faults_[images_.size()] = sample.fault;
    table_.add(sample.image, sample.label);
    images_.push_back({.place = sample.place, .bytes = sample.bytes.data()});
  }
}

std::size_t WebDataset::file_of(std::uint64_t index) const noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(info_.file_ends, index) - info_.file_ends.begin());
}

RecordView WebDataset::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const Image& image = images_[index];
  if (const auto fault = faults_.find(index); fault != faults_.end()) {
    throw DataError(ErrorCode::kDataCorrupt, fault->second,
                    {.source = info_.name, .record = index, .offset = image.place.offset},
                    "each image needs key.cls, or a \"label\" in key.json");
  }
  if (image.bytes != nullptr) {
    return {.fields = {std::span(image.bytes, static_cast<std::size_t>(image.place.size)), table_.label(index)}};
  }
  const std::size_t file = file_of(index);
  const ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> into) {
    files_.read_exact(file, offset, into);
  };
  try {
    return {.fields = {read_stored_image(image.place, info_.name, read_at, scratch), table_.label(index)}};
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + describe(index),
                    {.source = info_.name, .record = index, .offset = image.place.offset}, error.message());
  }
}

std::optional<std::int64_t> WebDataset::label(std::uint64_t index) const noexcept {
  return faults_.contains(index) ? std::nullopt : std::optional(table_.label_value(index));
}

void WebDataset::will_read(std::span<const std::uint64_t> records) const {
  if (info_.resident || !files_.is_remote()) return;
  if (records.empty()) return files_.forget();
  std::map<std::size_t, std::vector<ByteExtent>> extents;  // by file
  for (const std::uint64_t record : records) {
    if (images_[record].bytes == nullptr) extents[file_of(record)].push_back(extent_of(images_[record].place));
  }
  for (const auto& [file, those] : extents) files_.will_read(file, those);
}

std::string WebDataset::describe(std::uint64_t index) const {
  std::string name(table_.name(index));
  return files_.size() == 1 ? name : files_.path(file_of(index)).filename().string() + "/" + name;
}

bool is_web_shard(const std::filesystem::path& path) {
  static const std::string kEndings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst"};
  if (has_ending(path, kEndings)) return true;
  const std::optional<ShardName> shard = parse_shard_name(path.filename().string());
  return shard && shard->ending.empty() && is_archive(path);
}

SourcePtr web_dataset(const std::filesystem::path& path, WebDatasetOptions options) {
  if (path_kind(path) != PathKind::kDirectory) return web_dataset(std::vector{path}, std::move(options));
  static const std::string kZip[] = {".zip"};
  std::vector<std::filesystem::path> archives = find_shards(
      path, [](const auto& file) { return is_web_shard(file) || has_ending(file, kZip); }, options.split);
  if (archives.empty())
    throw DataError(ErrorCode::kNotFound, "has no .tar or .zip file", {.source = path.string()});
  return opened_by(WebDatasetCall{.paths = {path}, .options = options},
                   std::make_shared<WebDataset>(path.string(), std::move(archives), options));
}

SourcePtr web_dataset(std::vector<std::filesystem::path> archives, WebDatasetOptions options) {
  if (archives.empty()) throw ConfigError("web_dataset() was given no archives");
  std::string name = archives.front().string();
  if (archives.size() > 1) name += fmt::format(" and {} more", archives.size() - 1);
  WebDatasetCall call{.paths = archives, .options = options};
  return opened_by(std::move(call), std::make_shared<WebDataset>(std::move(name), std::move(archives), options));
}

SourceOriginPtr web_dataset_origin() { return std::make_shared<const CallOrigin<WebDatasetCall>>(); }

}  // namespace headrace
