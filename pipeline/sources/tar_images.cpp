#include "headrace/pipeline/sources/tar_images.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/file_input.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/tar_members.h"

namespace headrace {

TarImages::Index TarImages::index(const std::filesystem::path& archive, Split split,
                                  const LayoutOptions& layout_options) {
  FileInput input(archive);
  TarReader reader(input);
  std::vector<std::string> paths;
  std::vector<Extent> members;
  while (std::optional<TarMember> member = next_file(reader, archive.string())) {
    paths.push_back(std::move(member->path));
    members.push_back({.offset = member->offset, .size = member->size});
  }
  const ImageListing layout = lay_out_images(paths, split, archive.string(), layout_options);
  Index index{.table = ImageTable(layout, paths), .extents = {}};
  index.extents.reserve(layout.records.size());
  for (const ImageListing::Record& record : layout.records) index.extents.push_back(members[record.path]);
  return index;
}

TarImages::TarImages(const std::filesystem::path& archive, Split split, const LayoutOptions& layout)
    : TarImages(archive, index(archive, split, layout)) {}

TarImages::TarImages(const std::filesystem::path& archive, Index index)
    : file_(File::open(archive)), table_(std::move(index.table)), extents_(std::move(index.extents)) {
  Fingerprint fingerprint("tar images 1");
  table_.add_to(fingerprint);
  // Not the offsets: the same files in another order of packing are the same data.
  for (const Extent& extent : extents_) fingerprint.add(extent.size);
  info_ = table_.info(archive.string(), fingerprint);
  info_.revision = file_.modified_ns();
}

RecordView TarImages::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const Extent& extent = extents_[index];
  if (scratch.size() < extent.size) scratch.resize(extent.size);
  const std::span<std::byte> bytes = std::span(scratch).first(extent.size);
  try {
    file_.read_exact(extent.offset, bytes);
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + describe(index),
                    {.source = info_.name, .record = index, .offset = extent.offset}, error.message());
  }
  return {.fields = {bytes, table_.label(index)}};
}

std::string TarImages::describe(std::uint64_t index) const { return std::string(table_.name(index)); }

}  // namespace headrace
