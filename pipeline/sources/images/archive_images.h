// Images inside an archive that is read by position: a plain .tar, or a .zip. Indexed once.
#pragma once

#include <filesystem>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/pipeline/sources/images/sidecars.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/table_column.h"

namespace headrace {

class ArchiveImages final : public Source {
 public:
  // `recognised`: as in refuse_samples(). REQUIRES: files.has_positions().
  ArchiveImages(const std::filesystem::path& archive, ArchiveFiles& files, const ArchiveOptions& options,
                bool recognised);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return places_[index].offset; }
  std::string describe(std::uint64_t index) const override;

 private:
  struct Index {
    ImageTable table;
    MemberFields fields;
    Sidecars sidecars;
    std::vector<StoredFile> places;
    std::vector<StoredFile> beside;
  };
  class Beside;  // the files beside an image

  static Index index(const std::filesystem::path& archive, ArchiveFiles& files, const ArchiveOptions& options,
                     bool recognised);
  ArchiveImages(const std::filesystem::path& archive, Index index);
  void take_along(const Sidecars& sidecars, Fingerprint& fingerprint, bool is_zip);
  std::vector<ByteExtent> extents_of(std::span<const std::uint64_t> records, bool with_images) const;

  File file_;
  ReadAt read_at_;
  ImageTable table_;
  MemberFields fields_;
  TableColumn<StoredFile> places_;
  std::vector<StoredFile> beside_;  // by record, as MemberFields::extensions(); those missing have no place
  SourceInfo info_;
};

// Opens an archive that may be of WebDataset: throws SamplesNotImages if it is. Else as image_archive().
SourcePtr recognised_image_archive(const std::filesystem::path& archive, const ArchiveOptions& options);

}  // namespace headrace
