// Names and labels of a source's records, few bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/name_list.h"
#include "headrace/pipeline/sources/table_column.h"

namespace headrace {

class SampleTable {
 public:
  SampleTable() = default;
  // REQUIRES: as many names as labels.
  SampleTable(NameList names, std::vector<std::int64_t> labels)
      : labels_(std::move(labels)), names_(std::move(names)) {}

  void reserve(std::size_t records, std::size_t name_bytes) {
    names_.reserve(records, name_bytes);
    labels_.reserve(records);
  }
  void add(std::string_view name, std::int64_t label) {
    names_.add(name);
    labels_.push_back(label);
  }

  std::size_t size() const noexcept { return labels_.size(); }
  std::string_view name(std::size_t index) const noexcept { return names_[index]; }
  // Returns the label as eight bytes owned by the table.
  std::span<const std::byte> label(std::size_t index) const noexcept {
    return std::as_bytes(std::span(&labels_[index], 1));
  }
  std::int64_t label_value(std::size_t index) const noexcept { return labels_[index]; }

  // As TableColumn::share(): no record is added any more.
  void share() {
    names_.share();
    labels_.share();
  }

  // Mixes names and labels into a source's fingerprint.
  void add_to(Fingerprint& fingerprint) const {
    fingerprint.add(names_.bytes()).add(std::as_bytes(std::span(labels_))).add(std::as_bytes(names_.ends()));
  }

 protected:
  const NameList& names() const noexcept { return names_; }
  std::span<const std::int64_t> labels() const noexcept { return labels_; }

 private:
  TableColumn<std::int64_t> labels_;
  NameList names_;
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
