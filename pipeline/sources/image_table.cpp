#include "headrace/pipeline/sources/image_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headrace {

ImageTable::ImageTable(const ImageListing& layout, const std::vector<std::string>& paths)
    : classes_(layout.classes), label_values_(std::max<std::size_t>(1, layout.classes.size())) {
  std::iota(label_values_.begin(), label_values_.end(), 0);
  left_out_ = layout.left_out;
  labels_.reserve(layout.records.size());
  name_ends_.reserve(layout.records.size());
  for (const ImageListing::Record& record : layout.records) {
    labels_.push_back(record.label);
    names_ += paths[record.path];
    name_ends_.push_back(names_.size());
  }
  names_.shrink_to_fit();
}

std::string_view ImageTable::name(std::size_t index) const noexcept {
  const std::size_t begin = index == 0 ? 0 : name_ends_[index - 1];
  return std::string_view(names_).substr(begin, name_ends_[index] - begin);
}

std::span<const std::byte> ImageTable::label(std::size_t index) const noexcept {
  return std::as_bytes(std::span(&label_values_[labels_[index]], 1));
}

void ImageTable::add_to(Fingerprint& fingerprint) const {
  for (const std::string& name : classes_) fingerprint.add(name);
  fingerprint.add(names_).add(std::as_bytes(std::span(labels_))).add(std::as_bytes(std::span(name_ends_)));
}

SourceInfo ImageTable::info(std::string name, const Fingerprint& fingerprint) const {
  SourceInfo info;
  info.name = std::move(name);
  info.records = size();
  info.fields = {{.name = "image",
                  .dtype = DType::kU8,
                  .shape = {Shape::kDynamic, Shape::kDynamic, 3},
                  .encoding = Encoding::kImage},
                 {.name = "label", .dtype = DType::kI64, .shape = {}}};
  info.classes = classes_;
  info.left_out = left_out_;
  info.fingerprint = fingerprint.value();
  return info;
}

}  // namespace headrace
