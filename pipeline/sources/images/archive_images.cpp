#include "headrace/pipeline/sources/images/archive_images.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/members/record_parts.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

constexpr std::uint64_t kNoPlace = ~std::uint64_t{0};          // the offset of a file that is missing
constexpr std::uint64_t kMaxSidecar = std::uint64_t{1} << 30;  // bytes

}  // namespace

class ArchiveImages::Beside final : public SampleMembers {
 public:
  Beside(const ArchiveImages& images, std::uint64_t record) : images_(images), record_(record) {}

  std::optional<std::uint64_t> size(std::size_t member) const override {
    const StoredFile& place = at(member);
    if (place.offset == kNoPlace) return std::nullopt;
    if (place.size <= kMaxSidecar) return place.size;
    throw Error(ErrorCode::kDataCorrupt, "the file '" + images_.fields_.extensions()[member] + "' beside it has " +
                                             std::to_string(place.size) + " bytes; " +
                                             std::to_string(kMaxSidecar) + " can be taken along");
  }
  std::span<const std::byte> kept(std::size_t /*member*/) const override { return {}; }
  std::string path(std::size_t member) const override {
    return Sidecars::path_beside(images_.table_.name(record_), images_.fields_.extensions()[member]);
  }
  void read(std::size_t member, std::span<std::byte> into) const override {
    read_stored(at(member), images_.info_.name, images_.read_at_, into);
  }

 private:
  const StoredFile& at(std::size_t member) const {
    return images_.beside_[static_cast<std::size_t>(record_) * images_.fields_.extensions().size() + member];
  }

  const ArchiveImages& images_;
  std::uint64_t record_;
};

ArchiveImages::Index ArchiveImages::index(const std::filesystem::path& archive, ArchiveFiles& files,
                                          const ArchiveOptions& options, bool recognised) {
  NameList paths;
  std::vector<StoredFile> members;
  while (const std::optional<ArchiveFile> file = files.next()) {
    paths.add(file->path);
    members.push_back(file->place);
  }
  for (const std::string& folder : files.folders()) {
    paths.add(folder);
    members.push_back({});
  }
  refuse_cifar_pickles(paths, archive.string());
  MemberFields fields(options.columns, archive.string());
  refuse_samples(paths, fields.extensions(), options.layout, archive.string(), recognised);
  Sidecars sidecars(paths, fields.extensions());
  ImageListing layout = lay_out_images(paths, options.split, archive.string(), options.layout);
  add_links_out(files.links_out(), layout.left_out);
  std::vector<StoredFile> places, beside;
  bool are_all = layout.records.size() == members.size() && fields.extensions().empty();
  for (std::size_t i = 0; are_all && i < members.size(); ++i) {
    are_all = sidecars.listed_at(layout.records[i].path) == i;
  }
  if (are_all) {
    return {.table = ImageTable(layout, std::move(paths)),
            .fields = std::move(fields),
            .sidecars = std::move(sidecars),
            .places = std::move(members),
            .beside = {}};
  }
  places.reserve(layout.records.size());
  beside.reserve(layout.records.size() * fields.extensions().size());
  for (const ImageListing::Record& record : layout.records) {
    places.push_back(members[sidecars.listed_at(record.path)]);
    for (const std::string& extension : fields.extensions()) {
      const std::size_t listed = sidecars.find(Sidecars::path_beside(paths[record.path], extension));
      beside.push_back(listed == Sidecars::kMissing ? StoredFile{.offset = kNoPlace} : members[listed]);
    }
  }
  return {.table = ImageTable(layout, std::move(paths)),
          .fields = std::move(fields),
          .sidecars = std::move(sidecars),
          .places = std::move(places),
          .beside = std::move(beside)};
}

ArchiveImages::ArchiveImages(const std::filesystem::path& archive, ArchiveFiles& files,
                             const ArchiveOptions& options, bool recognised)
    : ArchiveImages(archive, index(archive, files, options, recognised)) {}

ArchiveImages::ArchiveImages(const std::filesystem::path& archive, Index index)
    : file_(File::open(archive)),
      read_at_([this](std::uint64_t offset, std::span<std::byte> into) { file_.read_exact(offset, into); }),
      table_(std::move(index.table)),
      fields_(std::move(index.fields)),
      places_(std::move(index.places)),
      beside_(std::move(index.beside)) {
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
  if (!fields_.empty()) take_along(index.sidecars, fingerprint, is_zip);
  table_.share();
  places_.share();
}

void ArchiveImages::take_along(const Sidecars& sidecars, Fingerprint& fingerprint, bool is_zip) {
  for (const StoredFile& place : beside_) {
    fingerprint.add(place.size);
    if (is_zip) fingerprint.add(std::uint64_t{place.crc});
  }
  std::vector<std::uint64_t> all(static_cast<std::size_t>(fields_.samples_to_learn_from(table_.size())));
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  for (std::size_t begin = 0; begin < all.size(); begin += kSamplesLearnedFrom) {
    const auto some = std::span<const std::uint64_t>(all).subspan(begin).first(
        std::min(all.size() - begin, kSamplesLearnedFrom));
    if (file_.is_remote() && !fields_.are_bytes()) file_.will_read(extents_of(some, /*with_images=*/false));
    for (const std::uint64_t record : some) fields_.learn(Beside(*this, record));
  }
  settle_sidecars(fields_, sidecars, fingerprint, info_);
}

RecordView ArchiveImages::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const StoredFile& place = places_[index];
  try {
    RecordParts parts(scratch);
    parts.keep_first(read_stored_image(place, info_.name, read_at_, scratch));
    parts.keep(1, table_.label(index));
    fields_.read(Beside(*this, index), 2, parts);
    return parts.view();
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + describe(index),
                    {.source = info_.name, .record = index, .offset = place.offset}, error.message());
  } catch (const Error& error) {
    throw DataError(error.code(), describe(index) + ": " + error.message(),
                    {.source = info_.name, .record = index, .offset = place.offset}, error.hint());
  }
}

void ArchiveImages::will_read(std::span<const std::uint64_t> records) const {
  if (!file_.is_remote()) return;
  file_.will_read(extents_of(records, /*with_images=*/true));
}

std::vector<ByteExtent> ArchiveImages::extents_of(std::span<const std::uint64_t> records, bool with_images) const {
  std::vector<ByteExtent> extents;
  const std::size_t count = fields_.extensions().size();
  for (const std::uint64_t record : records) {
    if (with_images) extents.push_back(extent_of(places_[record]));
    for (std::size_t member = 0; member < count; ++member) {
      const StoredFile& place = beside_[static_cast<std::size_t>(record) * count + member];
      if (place.offset != kNoPlace) extents.push_back(extent_of(place));
    }
  }
  return extents;
}

std::string ArchiveImages::describe(std::uint64_t index) const { return std::string(table_.name(index)); }

}  // namespace headrace
