#include "headrace/pipeline/sources/arrow/arrow_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/columns.h"

namespace headrace {
namespace {

// What a column could be.
struct Candidate {
  std::string name;  // "image", "objects.count"
  ArrowPath path;
  const ArrowType* type;
  bool is_file = false;         // a struct of an encoded file's bytes and path, named by the struct
  ArrowPath files = {};         // then the column of paths
  bool is_image = false;        // its bytes are encoded images
  const char* other = nullptr;  // its bytes are images of this format, which is not read

  bool has_numbers() const noexcept {
    const ArrowKind kind = type->innermost().values().kind;
    return kind == ArrowKind::kNumbers || kind == ArrowKind::kBits;
  }
  bool has_text() const noexcept { return type->has_text(); }
  std::string holds() const {
    return is_image ? "images" : other != nullptr ? std::string(other) + " images" : describe(*type);
  }

  NamedColumn named() const {
    using enum ColumnType;
    NamedColumn column{.name = name, .holds = holds(), .alias = is_file ? name + ".bytes" : ""};
    if (is_image) {
      column.types = {kNumber, kText, kMask};
    } else if (has_text()) {
      column.types = {kText, kClass};
    } else if (type->values().is_bytes()) {
      column.types = {kText};
    } else if (has_numbers()) {
      column.is_number = !type->is_list();
      column.types = {kNumber, kList};
      if (column.is_number) column.types.push_back(kClass);
    } else {
      column.hint = "cast it to numbers";
    }
    return column;
  }
};

bool is_null_type(const ArrowType& type) { return type.format == "n"; }

// Hugging Face's images: the bytes of a file, and its path, which may be null throughout.
bool is_file_struct(const ArrowType& type) {
  const auto has = [&](const char* name, bool or_null) {
    return std::ranges::any_of(type.children, [&](const ArrowType& one) {
      return one.name == name && (one.is_bytes() || (or_null && is_null_type(one)));
    });
  };
  return type.kind == ArrowKind::kStruct && type.children.size() == 2 && has("bytes", false) && has("path", true);
}

void add_candidates(const ArrowType& parent, const std::string& prefix, const ArrowPath& path,
                    std::vector<Candidate>& candidates) {
  for (std::size_t i = 0; i < parent.children.size(); ++i) {
    const ArrowType& type = parent.children[i];
    Candidate one{.name = prefix + type.name, .path = path, .type = &type};
    one.path.push_back(i);
    if (is_file_struct(type)) {
      const auto bytes = std::ranges::find(type.children, "bytes", &ArrowType::name);
      const auto file = std::ranges::find(type.children, "path", &ArrowType::name);
      if (!is_null_type(*file)) {
        one.files = one.path;
        one.files.push_back(static_cast<std::size_t>(file - type.children.begin()));
      }
      one.path.push_back(static_cast<std::size_t>(bytes - type.children.begin()));
      one.type = &*bytes;
      one.is_file = true;
    } else if (type.kind == ArrowKind::kStruct) {
      add_candidates(type, one.name + ".", one.path, candidates);
      continue;
    }
    candidates.push_back(std::move(one));
  }
}

std::vector<Candidate> candidates_in(const ArrowType& root,
                                     const std::function<ArrowBytes(const ArrowPath&)>& look) {
  std::vector<Candidate> candidates;
  add_candidates(root, "", {}, candidates);
  for (Candidate& one : candidates) {
    if (!one.type->is_bytes() || one.type->is_text) continue;
    const ArrowBytes found = look(one.path);
    one.is_image = found.images || (one.is_file && !found.anything);
    if (!one.is_image) one.other = found.other;
  }
  return candidates;
}

std::vector<NamedColumn> named_columns(const std::vector<Candidate>& candidates) {
  std::vector<NamedColumn> columns;
  for (const Candidate& one : candidates) columns.push_back(one.named());
  return columns;
}

class ArrowChooser {
 public:
  ArrowChooser(const ArrowType& root, const ArrowOptions& options,
               const std::function<ArrowBytes(const ArrowPath&)>& look)
      : options_(options),
        candidates_(candidates_in(root, look)),
        chooser_(options.name, {}, named_columns(candidates_)) {}

  ArrowColumns choose() {
    take_image();
    take_label();
    const bool has_image = !taken_.empty() && taken_.front().field == "image";
    for (const std::string& text : options_.columns.columns) {
      const ChosenField chosen = chooser_.take(text);
      take(chosen.field, use_of(chosen), chosen.columns);
    }
    if (options_.columns.columns.empty() && !has_image) take_numbers();
    if (taken_.empty()) {
      refuse("has no column of images, no label and no column of numbers",
             "name columns to take: COLUMN:text, COLUMN:class");
    }
    return {.taken = std::move(taken_), .all = chooser_.listed()};
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw ConfigError(options_.name + ": " + what, hint);
  }
  [[noreturn]] void refuse_column(std::size_t column, const std::string& hint) const {
    const Candidate& one = candidates_[column];
    refuse(fmt::format("the column '{}' holds {}, which is no field", one.name, one.holds()), hint);
  }

  void take(std::string field, ArrowUse use, const std::vector<std::size_t>& columns) {
    ArrowColumn& taken = taken_.emplace_back(ArrowColumn{.field = std::move(field), .use = use});
    for (const std::size_t column : columns) {
      const Candidate& one = candidates_[column];
      if (use == ArrowUse::kImage || use == ArrowUse::kMask) taken.files = one.files;
      taken.paths.push_back(one.path);
      taken.names.push_back(one.name);
    }
  }
  void add(const std::string& field, ArrowUse use, std::size_t column) {
    chooser_.add(field, {column});
    take(field, use, {column});
  }

  ArrowUse use_of(const ChosenField& chosen) const {
    switch (chosen.type) {
      case ColumnType::kText: return ArrowUse::kText;
      case ColumnType::kClass: return ArrowUse::kClass;
      case ColumnType::kMask: return ArrowUse::kMask;
      case ColumnType::kList:
      case ColumnType::kNumber: break;
    }
    return candidates_[chosen.columns.front()].is_image ? ArrowUse::kImage : ArrowUse::kNumbers;
  }

  // Returns the image named, else the only one, or the one that is called so.
  std::optional<std::size_t> find_image() const {
    const std::string& name = options_.columns.image_column;
    if (!name.empty()) return chooser_.require(name, "ColumnOptions::image_column");
    std::vector<std::size_t> images;
    std::vector<std::string> names;
    std::optional<std::size_t> other;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].other != nullptr && !other) other = i;
      if (!candidates_[i].is_image) continue;
      images.push_back(i);
      names.push_back(candidates_[i].name);
    }
    if (images.empty()) return options_.columns.columns.empty() ? other : std::nullopt;
    if (images.size() == 1) return images.front();
    const std::optional<std::size_t> named_so = chooser_.find("image");
    if (named_so && candidates_[*named_so].is_image) return named_so;
    refuse(fmt::format("has {} columns of images: {}", images.size(), fmt::join(names, ", ")),
           "name the one to be decoded with " + named_or("ColumnOptions::image_column", "the option for images"));
  }

  void take_image() {
    const std::optional<std::size_t> found = find_image();
    if (!found) return;
    const Candidate& image = candidates_[*found];
    if (image.other != nullptr) {
      refuse(fmt::format("the column '{}' holds images in {}, which is not read", image.name, image.other),
             joined({"convert them to JPEG or PNG",
                     advice("leave them out by naming other columns with {}", named("ColumnOptions::columns"))}));
    }
    const bool is_encoded = image.is_image || (image.type->is_bytes() && !image.type->is_text);
    if (!is_encoded && !image.has_numbers()) {
      refuse_column(*found, "an image is the bytes of a JPEG or PNG file, or a list of numbers");
    }
    add("image", is_encoded ? ArrowUse::kImage : ArrowUse::kNumbers, *found);
  }

  void take_label() {
    const std::string& name = options_.columns.label_column;
    const std::optional<std::size_t> found =
        name.empty() ? chooser_.find("label") : chooser_.require(name, "ColumnOptions::label_column");
    if (!found || !chooser_.field_of(*found).empty()) return;
    const Candidate& label = candidates_[*found];
    const LabelType type = options_.columns.label_type;
    const bool is_class = label.has_text() || type == LabelType::kClass;
    if (label.has_text() && type == LabelType::kNumber) {
      refuse(fmt::format("the label '{}' is text", label.name),
             "cast it to a number, or leave out " + named_or("ColumnOptions::label_type", "the type of labels"));
    }
    if (!label.has_text() && (!label.has_numbers() || (is_class && label.type->is_list()))) {
      refuse_column(*found, "a label is a number, a list of numbers, or the name of a class");
    }
    add("label", is_class ? ArrowUse::kClass : ArrowUse::kNumbers, *found);
  }

  void take_numbers() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].has_numbers() && chooser_.field_of(i).empty()) {
        add(candidates_[i].name, ArrowUse::kNumbers, i);
      }
    }
  }

  const ArrowOptions& options_;
  const std::vector<Candidate> candidates_;
  ColumnChooser chooser_;
  std::vector<ArrowColumn> taken_;
};

const FileElement& element_of(const ArrowType& type) {
  static constexpr FileElement kByte;  // of a boolean
  const ArrowType& values = type.innermost().values();
  return values.kind == ArrowKind::kBits ? kByte : values.element;
}

}  // namespace

ArrowColumns choose_arrow_columns(const ArrowType& root, const ArrowOptions& options,
                                  const std::function<ArrowBytes(const ArrowPath&)>& look) {
  return ArrowChooser(root, options, look).choose();
}

bool has_floats(const ArrowType& type) { return element_of(type).kind == FileElement::Kind::kFloat; }

DType number_type(const ArrowType& root, const ArrowColumn& column, LabelType label_type) {
  const auto type_of = [&](const ArrowPath& path) -> const ArrowType& { return type_at(root, path); };
  const bool is_common = column.is_label() || column.paths.size() > 1;
  if (!is_common) return tensor_type_of(element_of(type_of(column.paths.front())));
  for (std::size_t i = 0; i < column.paths.size(); ++i) {
    if (tensor_type_of(element_of(type_of(column.paths[i]))) != DType::kF16) continue;
    throw ConfigError(fmt::format("the column '{}' holds float16 where float32 is needed", column.names[i]),
                      "cast it to float32");
  }
  const bool to_predict = column.is_label() && label_type == LabelType::kNumber;
  const auto floats = [&](const ArrowPath& path) { return has_floats(type_of(path)); };
  return to_predict || std::ranges::any_of(column.paths, floats) ? DType::kF32 : DType::kI64;
}

bool is_sliceable(const ArrowType& type, DType dtype) {
  const ArrowType& inner = type.innermost();
  return inner.kind == ArrowKind::kNumbers && is_tensor_type(inner.element) &&
         tensor_type_of(inner.element) == dtype;
}

}  // namespace headrace
