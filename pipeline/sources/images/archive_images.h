// Images inside an archive that is read by position: a plain .tar, or a .zip. Indexed once.
#pragma once

#include <filesystem>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/images/image_table.h"

namespace headrace {

class ArchiveImages final : public Source {
 public:
  // REQUIRES: files.has_positions().
  ArchiveImages(const std::filesystem::path& archive, ArchiveFiles& files, const ArchiveOptions& options);

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
    std::vector<StoredFile> places;
  };
  static Index index(const std::filesystem::path& archive, ArchiveFiles& files, const ArchiveOptions& options);
  ArchiveImages(const std::filesystem::path& archive, Index index);

  File file_;
  ReadAt read_at_;
  ImageTable table_;
  std::vector<StoredFile> places_;
  SourceInfo info_;
};

}  // namespace headrace
