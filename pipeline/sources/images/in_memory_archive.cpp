#include "headrace/pipeline/sources/images/in_memory_archive.h"

#include <memory>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/images/cifar_pickles.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {

struct InMemoryArchive::Unpacked {
  std::vector<ByteSlabs> slabs;
  std::vector<std::span<const std::byte>> images;
  std::vector<std::uint64_t> offsets;
  ImageTable table;
};

namespace {

struct Member {
  std::span<const std::byte> bytes;
  std::uint64_t offset = 0;
  bool of_other_split = false;
};

struct Members {
  ByteSlabs wanted;
  ByteSlabs other;  // probably not needed: kept apart so that it can be dropped
  std::vector<std::string> paths;
  std::vector<Member> list;  // beside paths
};

std::span<std::byte> allocate(ByteSlabs& slabs, std::uint64_t size, std::uint64_t& used, std::uint64_t limit,
                              const std::string& archive) {
  try {
    if (size <= limit - used) {
      used += size;
      return slabs.allocate(static_cast<std::size_t>(size));
    }
  } catch (const std::bad_alloc&) {
    // reported below like the limit: the way out is the same
  }
  throw DataError(
      ErrorCode::kOutOfMemory, "its images do not fit into " + std::to_string(limit >> 20) + " MiB of memory",
      {.source = archive}, "unpack it to a plain .tar, which is read from the disk, or raise memory_limit");
}

Members read_members(const std::string& archive, ArchiveFiles& files, const ArchiveOptions& options) {
  Members members;
  std::uint64_t used = 0;
  while (std::optional<ArchiveFile> found = files.next()) {
    Member member{.bytes = {},
                  .offset = found->place.offset,
                  .of_other_split = seems_of_other_split(found->path, options.split)};
    if (is_image_path(found->path)) {
      ByteSlabs& slabs = member.of_other_split ? members.other : members.wanted;
      const std::span<std::byte> bytes = allocate(slabs, found->place.size, used, options.memory_limit, archive);
      files.read(bytes);
      member.bytes = bytes;
    }
    members.list.push_back(member);
    members.paths.push_back(std::move(found->path));
  }
  return members;
}

}  // namespace

InMemoryArchive::Unpacked InMemoryArchive::unpack(const std::string& archive, ArchiveFiles& files,
                                                  const ArchiveOptions& options) {
  Members members = read_members(archive, files, options);
  refuse_cifar_pickles(members.paths, archive);
  const ImageListing layout = lay_out_images(members.paths, options.split, archive, options.layout);
  Unpacked unpacked{.slabs = {}, .images = {}, .offsets = {}, .table = ImageTable(layout, members.paths)};
  unpacked.images.reserve(layout.records.size());
  bool other_is_wanted = false;
  for (const ImageListing::Record& record : layout.records) {
    unpacked.images.push_back(members.list[record.path].bytes);
    unpacked.offsets.push_back(members.list[record.path].offset);
    other_is_wanted = other_is_wanted || members.list[record.path].of_other_split;
  }
  unpacked.slabs.push_back(std::move(members.wanted));
  if (other_is_wanted) unpacked.slabs.push_back(std::move(members.other));
  return unpacked;
}

InMemoryArchive::InMemoryArchive(const std::filesystem::path& archive, ArchiveFiles& files,
                                 const ArchiveOptions& options)
    : InMemoryArchive(archive, unpack(archive.string(), files, options)) {}

InMemoryArchive::InMemoryArchive(const std::filesystem::path& archive, Unpacked unpacked)
    : slabs_(std::move(unpacked.slabs)),
      images_(std::move(unpacked.images)),
      offsets_(std::move(unpacked.offsets)),
      table_(std::move(unpacked.table)) {
  Fingerprint fingerprint("packed images 1");
  table_.add_to(fingerprint);
  for (const std::span<const std::byte> image : images_) fingerprint.add(image);
  info_ = table_.info(archive.string(), fingerprint);
  info_.resident = true;
}

RecordView InMemoryArchive::read(std::uint64_t index, std::vector<std::byte>& /*scratch*/) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  return {.fields = {images_[index], table_.label(index)}};
}

std::string InMemoryArchive::describe(std::uint64_t index) const { return std::string(table_.name(index)); }

}  // namespace headrace
