#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/archives/open_archive.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/images/archive_images.h"
#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/pipeline/sources/images/sidecars.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/members/record_parts.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

class InMemoryArchive final : public Source {
 public:
  InMemoryArchive(const std::filesystem::path& archive, ArchiveFiles& files, const ArchiveOptions& options,
                  bool recognised);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return offsets_[index]; }
  std::string describe(std::uint64_t index) const override;

 private:
  struct Unpacked;
  static Unpacked unpack(const std::string& archive, ArchiveFiles& files, const ArchiveOptions& options,
                         bool recognised);
  InMemoryArchive(const std::filesystem::path& archive, Unpacked unpacked);

  class Beside;  // the files beside an image
  void take_along(const Sidecars& sidecars, Fingerprint& fingerprint);

  std::vector<ByteSlabs> slabs_;
  std::vector<std::span<const std::byte>> images_;  // into slabs_
  std::vector<std::uint64_t> offsets_;              // in the unpacked archive
  ImageTable table_;
  MemberFields fields_;
  std::vector<std::span<const std::byte>> beside_;  // by record, as MemberFields::extensions(); null: missing
  SourceInfo info_;
};

struct InMemoryArchive::Unpacked {
  std::vector<ByteSlabs> slabs;
  std::vector<std::span<const std::byte>> images;
  std::vector<std::uint64_t> offsets;
  ImageTable table;
  MemberFields fields;
  Sidecars sidecars;
  std::vector<std::span<const std::byte>> beside;
};

class InMemoryArchive::Beside final : public SampleMembers {
 public:
  Beside(const InMemoryArchive& images, std::uint64_t record) : images_(images), record_(record) {}

  std::optional<std::uint64_t> size(std::size_t member) const override {
    const std::span<const std::byte> bytes = kept(member);
    return bytes.data() == nullptr ? std::nullopt : std::optional<std::uint64_t>(bytes.size());
  }
  std::span<const std::byte> kept(std::size_t member) const override {
    return images_.beside_[static_cast<std::size_t>(record_) * images_.fields_.extensions().size() + member];
  }
  std::string path(std::size_t member) const override {
    return Sidecars::path_beside(images_.table_.name(record_), images_.fields_.extensions()[member]);
  }
  void read(std::size_t member, std::span<std::byte> into) const override {
    std::ranges::copy(kept(member), into.begin());
  }

 private:
  const InMemoryArchive& images_;
  std::uint64_t record_;
};

struct Member {
  std::span<const std::byte> bytes;
  std::uint64_t offset = 0;
  bool of_other_split = false;
};

struct Members {
  ByteSlabs wanted;
  ByteSlabs other;  // probably not needed: kept apart so that it can be dropped
  NameList paths;
  std::vector<Member> list;  // beside paths
};

std::span<std::byte> allocate(ByteSlabs& slabs, std::uint64_t size, std::uint64_t& used, std::uint64_t limit,
                              const std::string& archive) {
  try {
    if (size <= limit - used) {
      used += size;
      const auto bytes = static_cast<std::size_t>(size);
      return slabs.allocate(std::max<std::size_t>(bytes, 1)).first(bytes);  // never null
    }
  } catch (const std::bad_alloc&) {
    // reported below like the limit: the way out is the same
  }
  throw DataError(
      ErrorCode::kOutOfMemory, "its images do not fit into " + std::to_string(limit >> 20) + " MiB of memory",
      {.source = archive}, "unpack it to a plain .tar, which is read from the disk, or raise memory_limit");
}

Members read_members(const std::string& archive, ArchiveFiles& files, const ArchiveOptions& options,
                     const std::vector<std::string>& extensions) {
  Members members;
  std::uint64_t used = 0;
  while (const std::optional<ArchiveFile> found = files.next()) {
    Member member{.bytes = {},
                  .offset = found->place.offset,
                  .of_other_split = seems_of_other_split(found->path, options.split)};
    if (is_image_path(found->path) || Sidecars::is_one(found->path, extensions)) {
      ByteSlabs& slabs = member.of_other_split ? members.other : members.wanted;
      const std::span<std::byte> bytes = allocate(slabs, found->place.size, used, options.memory_limit, archive);
      files.read(bytes);
      member.bytes = bytes;
    }
    members.list.push_back(member);
    members.paths.add(found->path);
  }
  for (const std::string& folder : files.folders()) {
    members.list.push_back({});
    members.paths.add(folder);
  }
  return members;
}

InMemoryArchive::Unpacked InMemoryArchive::unpack(const std::string& archive, ArchiveFiles& files,
                                                  const ArchiveOptions& options, bool recognised) {
  MemberFields fields(options.columns, archive);
  Members members = read_members(archive, files, options, fields.extensions());
  refuse_cifar_pickles(members.paths, archive);
  refuse_samples(members.paths, fields.extensions(), options.layout, archive, recognised);
  Sidecars sidecars(members.paths, fields.extensions());
  ImageListing layout = lay_out_images(members.paths, options.split, archive, options.layout);
  add_links_out(files.links_out(), layout.left_out);
  Unpacked unpacked{.slabs = {},
                    .images = {},
                    .offsets = {},
                    .table = {},
                    .fields = std::move(fields),
                    .sidecars = std::move(sidecars),
                    .beside = {}};
  unpacked.images.reserve(layout.records.size());
  bool other_is_wanted = false;
  for (const ImageListing::Record& record : layout.records) {
    const Member& image = members.list[unpacked.sidecars.listed_at(record.path)];
    unpacked.images.push_back(image.bytes);
    unpacked.offsets.push_back(image.offset);
    other_is_wanted = other_is_wanted || image.of_other_split;
    for (const std::string& extension : unpacked.fields.extensions()) {
      const std::size_t at = unpacked.sidecars.find(Sidecars::path_beside(members.paths[record.path], extension));
      unpacked.beside.push_back(at == Sidecars::kMissing ? std::span<const std::byte>() : members.list[at].bytes);
    }
  }
  unpacked.table = ImageTable(layout, std::move(members.paths));
  unpacked.slabs.push_back(std::move(members.wanted));
  if (other_is_wanted) unpacked.slabs.push_back(std::move(members.other));
  return unpacked;
}

InMemoryArchive::InMemoryArchive(const std::filesystem::path& archive, ArchiveFiles& files,
                                 const ArchiveOptions& options, bool recognised)
    : InMemoryArchive(archive, unpack(archive.string(), files, options, recognised)) {}

InMemoryArchive::InMemoryArchive(const std::filesystem::path& archive, Unpacked unpacked)
    : slabs_(std::move(unpacked.slabs)),
      images_(std::move(unpacked.images)),
      offsets_(std::move(unpacked.offsets)),
      table_(std::move(unpacked.table)),
      fields_(std::move(unpacked.fields)),
      beside_(std::move(unpacked.beside)) {
  Fingerprint fingerprint("packed images 1");
  table_.add_to(fingerprint);
  for (const std::span<const std::byte> image : images_) fingerprint.add(image);
  info_ = table_.info(archive.string(), fingerprint);
  info_.resident = true;
  if (!fields_.empty()) take_along(unpacked.sidecars, fingerprint);
}

void InMemoryArchive::take_along(const Sidecars& sidecars, Fingerprint& fingerprint) {
  for (const std::span<const std::byte> file : beside_) fingerprint.add(file);
  const std::uint64_t learned = fields_.samples_to_learn_from(table_.size());
  for (std::uint64_t record = 0; record < learned; ++record) fields_.learn(Beside(*this, record));
  settle_sidecars(fields_, sidecars, fingerprint, info_);
}

RecordView InMemoryArchive::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  if (fields_.empty()) return {.fields = {images_[index], table_.label(index)}};
  try {
    RecordParts parts(scratch);
    parts.keep(0, images_[index]);
    parts.keep(1, table_.label(index));
    fields_.read(Beside(*this, index), 2, parts);
    return parts.view();
  } catch (const Error& error) {
    throw DataError(error.code(), describe(index) + ": " + error.message(),
                    {.source = info_.name, .record = index, .offset = offsets_[index]}, error.hint());
  }
}

std::string InMemoryArchive::describe(std::uint64_t index) const { return std::string(table_.name(index)); }

SourcePtr read_archive_images(const std::filesystem::path& archive, const ArchiveOptions& options,
                              bool recognised) {
  const std::unique_ptr<ArchiveFiles> files = open_archive(archive, options.memory_limit);
  if (files->has_positions()) return std::make_shared<ArchiveImages>(archive, *files, options, recognised);
  return std::make_shared<InMemoryArchive>(archive, *files, options, recognised);
}

}  // namespace

SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options) {
  return opened_by(ImageArchiveCall{{archive, options}},
                   read_archive_images(archive, options, /*recognised=*/false));
}

SourcePtr recognised_image_archive(const std::filesystem::path& archive, const ArchiveOptions& options) {
  return opened_by(ImageArchiveCall{{archive, options}},
                   read_archive_images(archive, options, /*recognised=*/true));
}

}  // namespace headrace
