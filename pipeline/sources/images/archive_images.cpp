#include "headrace/pipeline/sources/images/archive_images.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/images/cifar_pickles.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {

ArchiveImages::Index ArchiveImages::index(const std::filesystem::path& archive, ArchiveFiles& files,
                                          const ArchiveOptions& options) {
  std::vector<std::string> paths;
  std::vector<StoredFile> members;
  while (std::optional<ArchiveFile> file = files.next()) {
    paths.push_back(std::move(file->path));
    members.push_back(file->place);
  }
  refuse_cifar_pickles(paths, archive.string());
  const ImageListing layout = lay_out_images(paths, options.split, archive.string(), options.layout);
  Index index{.table = ImageTable(layout, paths), .places = {}};
  index.places.reserve(layout.records.size());
  for (const ImageListing::Record& record : layout.records) index.places.push_back(members[record.path]);
  return index;
}

ArchiveImages::ArchiveImages(const std::filesystem::path& archive, ArchiveFiles& files,
                             const ArchiveOptions& options)
    : ArchiveImages(archive, index(archive, files, options)) {}

ArchiveImages::ArchiveImages(const std::filesystem::path& archive, Index index)
    : file_(File::open(archive)),
      read_at_([this](std::uint64_t offset, std::span<std::byte> into) { file_.read_exact(offset, into); }),
      table_(std::move(index.table)),
      places_(std::move(index.places)) {
  const bool is_zip = !places_.empty() && places_.front().kind != StoredFile::Kind::kPlain;
  Fingerprint fingerprint(is_zip ? "zip images 1" : "tar images 1");
  table_.add_to(fingerprint);
  // Not the offsets: the same files in another order of packing are the same data.
  for (const StoredFile& place : places_) {
    fingerprint.add(place.size);
    if (is_zip) fingerprint.add(std::uint64_t{place.crc});
  }
  info_ = table_.info(archive.string(), fingerprint);
  info_.revision = file_.modified_ns();
}

RecordView ArchiveImages::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const StoredFile& place = places_[index];
  try {
    return {.fields = {read_stored_image(place, info_.name, read_at_, scratch), table_.label(index)}};
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + describe(index),
                    {.source = info_.name, .record = index, .offset = place.offset}, error.message());
  }
}

void ArchiveImages::will_read(std::span<const std::uint64_t> records) const {
  if (!file_.is_remote()) return;
  std::vector<ByteExtent> extents;
  for (const std::uint64_t record : records) extents.push_back(extent_of(places_[record]));
  file_.will_read(extents);
}

std::string ArchiveImages::describe(std::uint64_t index) const { return std::string(table_.name(index)); }

}  // namespace headrace
