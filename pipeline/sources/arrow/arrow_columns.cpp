#include "headrace/pipeline/sources/arrow/arrow_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"

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
  bool has_bytes() const noexcept { return type->values().is_bytes(); }
  bool has_text() const noexcept { return type->has_text(); }
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

class Chooser {
 public:
  Chooser(const ArrowType& root, const ArrowOptions& options,
          const std::function<ArrowBytes(const ArrowPath&)>& look)
      : options_(options) {
    add_candidates(root, "", {}, candidates_);
    for (Candidate& one : candidates_) {
      if (one.type->is_bytes() && !one.type->is_text) {
        const ArrowBytes found = look(one.path);
        one.is_image = found.images || (one.is_file && !found.anything);
        if (!one.is_image) one.other = found.other;
      }
      names_.push_back(one.name);
    }
  }

  ArrowColumns choose() {
    take_image();
    take_label();
    const bool has_image = !chosen_.taken.empty() && chosen_.taken.front().field == "image";
    for (const std::string& text : options_.columns.columns) take(text);
    if (options_.columns.columns.empty() && !has_image) take_numbers();
    if (chosen_.taken.empty()) {
      refuse("has no column of images, no label and no column of numbers",
             "name columns to take: COLUMN:text, COLUMN:class");
    }
    if (chosen_.taken.size() > kMaxFields) {
      refuse(fmt::format("{} columns: a record has at most {} fields", chosen_.taken.size(), kMaxFields),
             "make one field of several columns of numbers: NAME=COLUMN+COLUMN");
    }
    for (const Candidate& one : candidates_) {
      const std::string holds = one.is_image           ? "images"
                                : one.other != nullptr ? std::string(one.other) + " images"
                                                       : describe(*one.type);
      chosen_.all.push_back({.name = one.name, .holds = holds, .field = field_of(one)});
    }
    return std::move(chosen_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw ConfigError(options_.name + ": " + what, hint);
  }
  [[noreturn]] void refuse_type(const Candidate& one, const std::string& hint) const {
    refuse(fmt::format("the column '{}' holds {}, which is no field", one.name, describe(*one.type)), hint);
  }

  const Candidate* find(const std::string& name) const {
    // The bytes of an image's struct are the image.
    const auto found = std::ranges::find_if(candidates_, [&](const Candidate& one) {
      return one.name == name || (one.is_file && one.name + ".bytes" == name);
    });
    return found == candidates_.end() ? nullptr : &*found;
  }
  const Candidate& require(const std::string& name, std::string_view option) const {
    if (const Candidate* found = find(name)) return *found;
    refuse(fmt::format("has no column '{}'; there are {}{}", name, fmt::join(names_, ", "),
                       did_you_mean(name, names_)),
           "name one of these with " + named_or(option, "the options for columns"));
  }
  std::string field_of(const Candidate& one) const {
    for (const ArrowColumn& column : chosen_.taken) {
      if (std::ranges::count(column.names, one.name) > 0) return column.field;
    }
    return {};
  }

  void add(std::string field, ArrowUse use, const Candidate& one) {
    chosen_.taken.push_back({.field = std::move(field),
                             .use = use,
                             .paths = {one.path},
                             .names = {one.name},
                             .files = use == ArrowUse::kImage ? one.files : ArrowPath()});
  }

  // The image named, else the only one.
  void take_image() {
    const Candidate* image = nullptr;
    if (!options_.columns.image_column.empty()) {
      image = &require(options_.columns.image_column, "ColumnOptions::image_column");
    } else {
      const auto count = std::ranges::count_if(candidates_, &Candidate::is_image);
      const Candidate* named_so = find("image");
      const auto first = std::ranges::find_if(candidates_, &Candidate::is_image);
      if (count == 1) image = &*first;
      if (count > 1 && named_so != nullptr && named_so->is_image) image = named_so;
      if (count > 1 && image == nullptr) {
        std::vector<std::string> images;
        for (const Candidate& one : candidates_) {
          if (one.is_image) images.push_back(one.name);
        }
        refuse(
            fmt::format("has {} columns of images: {}", count, fmt::join(images, ", ")),
            "name the one to be decoded with " + named_or("ColumnOptions::image_column", "the option for images"));
      }
    }
    const auto other =
        std::ranges::find_if(candidates_, [](const Candidate& one) { return one.other != nullptr; });
    if (image == nullptr && options_.columns.columns.empty() && other != candidates_.end()) image = &*other;
    if (image == nullptr) return;
    if (image->other != nullptr) {
      refuse(fmt::format("the column '{}' holds images in {}, which is not read", image->name, image->other),
             joined({"convert them to JPEG or PNG",
                     advice("leave them out by naming other columns with {}", named("ColumnOptions::columns"))}));
    }
    const bool is_encoded = image->is_image || (image->type->is_bytes() && !image->type->is_text);
    if (!is_encoded && !image->has_numbers()) {
      refuse_type(*image, "an image is the bytes of a JPEG or PNG file, or a list of numbers");
    }
    add("image", is_encoded ? ArrowUse::kImage : ArrowUse::kNumbers, *image);
  }

  void take_label() {
    const std::string& name = options_.columns.label_column;
    const Candidate* label = name.empty() ? find("label") : &require(name, "ColumnOptions::label_column");
    if (label == nullptr || !field_of(*label).empty()) return;
    const LabelType type = options_.columns.label_type;
    const bool is_class = label->has_text() || type == LabelType::kClass;
    if (label->has_text() && type == LabelType::kNumber) {
      refuse(fmt::format("the label '{}' is text", label->name),
             "cast it to a number, or leave out " + named_or("ColumnOptions::label_type", "the type of labels"));
    }
    if (!label->has_text() && (!label->has_numbers() || (is_class && label->type->is_list()))) {
      refuse_type(*label, "a label is a number, a list of numbers, or the name of a class");
    }
    add("label", is_class ? ArrowUse::kClass : ArrowUse::kNumbers, *label);
  }

  void take(const std::string& text) {
    const ColumnChoice choice = parse_column_choice(
        text, [&](const std::string& name) { return find(name) != nullptr; }, options_.name);
    const auto same = [&](const ArrowColumn& other) { return other.field == choice.field; };
    if (std::ranges::any_of(chosen_.taken, same)) {
      refuse(fmt::format("two fields are called '{}'", choice.field),
             "FIELD=COLUMN gives one of them another name");
    }
    ArrowColumn column{.field = choice.field};
    for (const std::string& name : choice.columns) {
      const Candidate& one = require(name, "ColumnOptions::columns");
      column.use = use_of(one, choice);
      if (column.use == ArrowUse::kImage || column.use == ArrowUse::kMask) column.files = one.files;
      column.paths.push_back(one.path);
      column.names.push_back(one.name);
    }
    chosen_.taken.push_back(std::move(column));
  }

  ArrowUse use_of(const Candidate& one, const ColumnChoice& choice) const {
    const bool is_alone = choice.columns.size() == 1;
    switch (choice.type) {
      case ColumnType::kText:
        if (!one.has_bytes()) refuse_type(one, "':text' takes a column of text or bytes");
        return ArrowUse::kText;
      case ColumnType::kClass:
        if (!one.has_text() && (!one.has_numbers() || one.type->is_list())) {
          refuse_type(one, "':class' takes a column of text or integers");
        }
        return ArrowUse::kClass;
      case ColumnType::kMask:
        if (!one.is_image) refuse_type(one, "':mask' takes a column of PNG files");
        return ArrowUse::kMask;
      case ColumnType::kList:
      case ColumnType::kNumber: break;
    }
    if (is_alone && one.is_image) return ArrowUse::kImage;
    if (one.has_text()) {
      refuse_type(one, fmt::format("for its text say '{0}:text', for the names of classes '{0}:class'", one.name));
    }
    const bool is_alike = is_alone || !one.type->is_list();
    if (one.has_numbers() && is_alike) return ArrowUse::kNumbers;
    refuse_type(one, "cast it to numbers; of several columns that become one field each holds a number");
  }

  void take_numbers() {
    for (const Candidate& one : candidates_) {
      if (one.has_numbers() && field_of(one).empty()) add(one.name, ArrowUse::kNumbers, one);
    }
  }

  const ArrowOptions& options_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> names_;
  ArrowColumns chosen_;
};

}  // namespace

ArrowColumns choose_arrow_columns(const ArrowType& root, const ArrowOptions& options,
                                  const std::function<ArrowBytes(const ArrowPath&)>& look) {
  return Chooser(root, options, look).choose();
}

}  // namespace headrace
