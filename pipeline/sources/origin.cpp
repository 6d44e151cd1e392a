#include "headrace/pipeline/sources/origin.h"

#include <algorithm>

namespace headrace {

SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin) {
  source->origin_ = std::move(origin);
  return source;
}

SourcePtr with_format(SourcePtr source, std::string format) {
  source->format_ = std::move(format);
  return source;
}

void show_split(Split& split, OptionVisitor& visit) {
  visit("split", split, "Which part of the data.", {"train", "test"});
}

void show_layout(LayoutOptions& layout, OptionVisitor& visit) {
  visit("classes_at", layout.classes_at);
  visit("train_folder", layout.train_folder);
  visit("test_folder", layout.test_folder);
}

void show_label_type(LabelType& type, OptionVisitor& visit) {
  visit("label_type", type, "What a label column holds.", {"auto", "class", "number"});
}

SourceOriginPtr find_source_origin(std::string_view name) {
  const auto found = std::ranges::find_if(source_origins(), [&](const auto& one) { return one->name() == name; });
  return found == source_origins().end() ? nullptr : *found;
}

}  // namespace headrace
