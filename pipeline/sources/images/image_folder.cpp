#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/images/folder_listing.h"
#include "headrace/pipeline/sources/images/image_table.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

// Images as files: listed once, opened at each read.
class ImageFolder final : public Source {
 public:
  ImageFolder(const std::filesystem::path& folder, const FolderListing& listing, const ImageListing& layout)
      : folder_(folder), table_(layout, listing.paths) {
    Fingerprint fingerprint("image folder 1"), revision("");
    table_.add_to(fingerprint);
    sizes_.reserve(layout.records.size());
    for (const ImageListing::Record& record : layout.records) {
      sizes_.push_back(listing.sizes[record.path]);
      fingerprint.add(sizes_.back());
      revision.add(listing.modified_ns[record.path]);
    }
    info_ = table_.info(folder.string(), fingerprint);
    info_.revision = revision.value();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    try {
      const File file = File::open(folder_ / table_.name(index));
      if (file.size() != sizes_[index]) throw changed(index, file.size());
      if (scratch.size() < file.size()) scratch.resize(file.size());
      const std::span<std::byte> bytes = std::span(scratch).first(file.size());
      file.read_exact(0, bytes);
      return {.fields = {bytes, table_.label(index)}};
    } catch (const DataError& error) {
      if (error.location().record != DataLocation::kUnknown) throw;
      throw DataError(error.code(), "cannot read " + describe(index),
                      {.source = info_.name, .record = index, .offset = error.location().offset}, error.message());
    }
  }

  void will_read(std::span<const std::uint64_t> records) const override {
    if (!is_url(folder_)) return;
    if (records.empty()) remote::forget_whole();
    for (const std::uint64_t record : records)
      remote::will_read_whole(folder_ / table_.name(record), sizes_[record]);
  }

  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return table_.label_value(index);
  }
  std::string describe(std::uint64_t index) const override { return std::string(table_.name(index)); }

 private:
  DataError changed(std::uint64_t index, std::uint64_t size) const {
    return DataError(ErrorCode::kDataCorrupt,
                     describe(index) + " has " + std::to_string(size) + " bytes, and had " +
                         std::to_string(sizes_[index]) + " when the folder was opened",
                     {.source = info_.name, .record = index}, "files must not change while they are read");
  }

  std::filesystem::path folder_;
  ImageTable table_;
  std::vector<std::uint64_t> sizes_;
  SourceInfo info_;
};

struct ImageFolderCall {
  static constexpr const char* kName = "image_folder";

  std::filesystem::path path = {};
  Split split = Split::kTrain;
  LayoutOptions layout = {};

  void show(OptionVisitor& visit) {
    visit("path", path);
    show_split(split, visit);
    show_layout(layout, visit);
  }
  SourcePtr open() const { return image_folder(path, split, layout); }
};

}  // namespace

SourcePtr image_folder(const std::filesystem::path& folder, Split split, const LayoutOptions& layout) {
  const FolderListing listing = list_files_below(folder);
  return opened_by(ImageFolderCall{.path = folder, .split = split, .layout = layout},
                   std::make_shared<ImageFolder>(folder, listing,
                                                 lay_out_images(listing.paths, split, folder.string(), layout)));
}

SourceOriginPtr image_folder_origin() { return std::make_shared<const CallOrigin<ImageFolderCall>>(); }

}  // namespace headrace
