// Names and labels of a source's records, few bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/fingerprint.h"

namespace headrace {

class SampleTable {
 public:
  void reserve(std::size_t records, std::size_t name_bytes) {
    names_.reserve(name_bytes);
    name_ends_.reserve(records);
    labels_.reserve(records);
  }
  void add(std::string_view name, std::int64_t label) {
    names_ += name;
    name_ends_.push_back(names_.size());
    labels_.push_back(label);
  }

  std::size_t size() const noexcept { return labels_.size(); }
  std::string_view name(std::size_t index) const noexcept {
    const std::size_t begin = index == 0 ? 0 : name_ends_[index - 1];
    return std::string_view(names_).substr(begin, name_ends_[index] - begin);
  }
  // Returns the label as eight bytes owned by the table.
  std::span<const std::byte> label(std::size_t index) const noexcept {
    return std::as_bytes(std::span(&labels_[index], 1));
  }
  std::int64_t label_value(std::size_t index) const noexcept { return labels_[index]; }

  // Mixes names and labels into a source's fingerprint.
  void add_to(Fingerprint& fingerprint) const {
    fingerprint.add(names_).add(std::as_bytes(std::span(labels_))).add(std::as_bytes(std::span(name_ends_)));
  }

 protected:
  std::string_view names() const noexcept { return names_; }  // all of them, back to back
  std::span<const std::int64_t> labels() const noexcept { return labels_; }
  std::span<const std::uint64_t> name_ends() const noexcept { return name_ends_; }

 private:
  std::vector<std::int64_t> labels_;
  std::vector<std::uint64_t> name_ends_;
  std::string names_;
};

// Returns the fields of a source of encoded images with labels: image, label.
inline Fields labelled_image_fields() {
  return {{.name = "image",
           .dtype = DType::kU8,
           .shape = {Shape::kDynamic, Shape::kDynamic, 3},
           .encoding = Encoding::kImage},
          {.name = "label", .dtype = DType::kI64, .shape = {}}};
}

}  // namespace headrace
