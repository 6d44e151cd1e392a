#include "headrace/pipeline/sources/web_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {

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
    fingerprint.add(image.size);
    if (image.bytes != nullptr) fingerprint.add(std::span(image.bytes, static_cast<std::size_t>(image.size)));
  }
  info_.fingerprint = fingerprint.value();
  info_.revision = files_.revision();
}

void WebDataset::fail_without_samples() const {
  const auto& [record, fault] = *faults_.begin();
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("none of its {} samples can be used; the first: {}", images_.size(), fault),
                  {.source = files_.path(file_of(record)).string(), .offset = images_[record].offset},
                  "each image needs key.cls, or a \"label\" in key.json");
}

void WebDataset::add_archive(std::size_t file, std::uint64_t memory_limit) {
  const bool packed = packing_of(files_.path(file)) != Packing::kPlain;
  info_.resident = info_.resident && packed;
  const auto keep = [&](TarReader& reader, const TarMember& member) -> std::span<const std::byte> {
    if (!packed) return {};
    const DataLocation at{.source = files_.path(file).string(), .offset = member.offset};
    if (member.size > memory_limit - in_memory_) {
      throw DataError(ErrorCode::kOutOfMemory,
                      fmt::format("the images do not fit into {} MiB of memory", memory_limit >> 20), at,
                      "unpack it to a plain .tar, which is read from the disk, or raise memory_limit");
    }
    in_memory_ += member.size;
    const std::span<std::byte> bytes = slabs_.allocate(static_cast<std::size_t>(member.size));
    reader.read(bytes);
    return bytes;
  };
  const std::unique_ptr<ByteInput> input = open_input(files_.path(file));
  for (const WebSample& sample : read_web_samples(*input, keep)) {
    if (!sample.fault.empty()) faults_[images_.size()] = sample.fault;
    table_.add(sample.image, sample.label);
    images_.push_back({.offset = sample.offset, .size = sample.size, .bytes = sample.bytes.data()});
  }
  // To the end of the compressed data: only there are its checksums.
  std::vector<std::byte> rest(std::size_t{64} << 10);
  while (packed && input->read(rest) > 0) continue;
}

std::size_t WebDataset::file_of(std::uint64_t index) const noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(info_.file_ends, index) - info_.file_ends.begin());
}

RecordView WebDataset::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const Image& image = images_[index];
  if (const auto fault = faults_.find(index); fault != faults_.end()) {
    throw DataError(ErrorCode::kDataCorrupt, fault->second,
                    {.source = info_.name, .record = index, .offset = image.offset},
                    "each image needs key.cls, or a \"label\" in key.json");
  }
  const auto size = static_cast<std::size_t>(image.size);
  if (image.bytes != nullptr) return {.fields = {std::span(image.bytes, size), table_.label(index)}};
  if (scratch.size() < size) scratch.resize(size);
  try {
    files_.read_exact(file_of(index), image.offset, std::span(scratch).first(size));
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + describe(index),
                    {.source = info_.name, .record = index, .offset = image.offset}, error.message());
  }
  return {.fields = {std::span<const std::byte>(scratch).first(size), table_.label(index)}};
}

std::optional<std::int64_t> WebDataset::label(std::uint64_t index) const noexcept {
  return faults_.contains(index) ? std::nullopt : std::optional(table_.label_value(index));
}

std::string WebDataset::describe(std::uint64_t index) const {
  std::string name(table_.name(index));
  return files_.size() == 1 ? name : files_.path(file_of(index)).filename().string() + "/" + name;
}

SourcePtr web_dataset(const std::filesystem::path& path, WebDatasetOptions options) {
  if (path_kind(path) != PathKind::kDirectory) return web_dataset(std::vector{path}, std::move(options));
  static const std::string kEndings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst"};
  std::vector<std::filesystem::path> archives = find_shards(path, kEndings, options.split);
  if (archives.empty()) throw DataError(ErrorCode::kNotFound, "has no .tar file", {.source = path.string()});
  return std::make_shared<WebDataset>(path.string(), std::move(archives), options);
}

SourcePtr web_dataset(std::vector<std::filesystem::path> archives, WebDatasetOptions options) {
  if (archives.empty()) throw ConfigError("web_dataset() was given no archives");
  std::string name = archives.front().string();
  if (archives.size() > 1) name += fmt::format(" and {} more", archives.size() - 1);
  return std::make_shared<WebDataset>(std::move(name), std::move(archives), options);
}

}  // namespace headrace
