// Names and labels of the images of one source, few bytes a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/image_listing.h"

namespace headrace {

class ImageTable {
 public:
  // Copies what it needs; `layout` refers to `paths`.
  ImageTable(const ImageListing& layout, const std::vector<std::string>& paths);

  std::size_t size() const noexcept { return labels_.size(); }
  std::string_view name(std::size_t index) const noexcept;
  // The label as eight bytes of the table's own.
  std::span<const std::byte> label(std::size_t index) const noexcept;
  std::int64_t label_value(std::size_t index) const noexcept { return label_values_[labels_[index]]; }

  // Mixes names, labels and classes into a source's fingerprint.
  void add_to(Fingerprint& fingerprint) const;

  // What all image sources have in common: fields, classes, record count, files left out.
  SourceInfo info(std::string name, const Fingerprint& fingerprint) const;

 private:
  std::vector<std::string> classes_;
  std::vector<LeftOut> left_out_;
  std::vector<std::int64_t> label_values_;  // 0, 1, 2 ...: what label() points to
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint64_t> name_ends_;
  std::string names_;  // all of them, back to back
};

}  // namespace headrace
