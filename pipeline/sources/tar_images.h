// Images inside a plain .tar: indexed once, read by position.
#pragma once

#include <filesystem>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/image_table.h"

namespace headrace {

class TarImages final : public Source {
 public:
  TarImages(const std::filesystem::path& archive, Split split, const LayoutOptions& layout = {});

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return extents_[index].offset; }
  std::string describe(std::uint64_t index) const override;

 private:
  struct Extent {
    std::uint64_t offset;
    std::uint64_t size;
  };
  struct Index {
    ImageTable table;
    std::vector<Extent> extents;
  };
  static Index index(const std::filesystem::path& archive, Split split, const LayoutOptions& layout);
  TarImages(const std::filesystem::path& archive, Index index);

  File file_;
  ImageTable table_;
  std::vector<Extent> extents_;
  SourceInfo info_;
};

}  // namespace headrace
