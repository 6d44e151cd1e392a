#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {

std::size_t find_field(const Fields& fields, const std::string& name) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
  }
  std::string known;
  for (const Field& field : fields) known += (known.empty() ? "" : ", ") + field.name;
  throw ConfigError("there is no field '" + name + "'",
                    known.empty() ? "there are no fields" : "fields: " + known);
}

bool has_doubtful_layout(const Field& field) noexcept {
  if (field.layout || field.encoding != Encoding::kRaw || field.shape.rank() != 3) return false;
  const auto few = [](std::int64_t extent) { return extent == 1 || extent == 3 || extent == 4; };
  const std::int64_t first = field.shape[0], last = field.shape[2];
  if (few(last) || first >= last || first == Shape::kDynamic) return false;  // kDynamic is below all extents
  return few(first) || first < field.shape[1];
}

std::string describe(const std::vector<LeftOut>& left_out) {
  if (left_out.empty()) return {};
  std::uint64_t files = 0;
  std::vector<std::string> parts;
  bool unread = false;
  for (const LeftOut& one : left_out) {
    files += one.files;
    parts.push_back(fmt::format("{} {}", with_commas(one.files), one.what));
    unread = unread || one.what.starts_with('.');
  }
  return fmt::format("{} left out: {}{}", count_of(files, "file"), fmt::join(parts, ", "),
                     unread ? "; Headrace reads JPEG and PNG" : "");
}

std::string describe(const std::vector<SourceColumn>& columns) {
  constexpr std::size_t kMaxNamed = 12;
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const SourceColumn& column : columns) {
    if (!column.field.empty()) continue;
    if (parts.size() < kMaxNamed) {
      parts.push_back(fmt::format("{} ({})", column.name, column.holds));
    } else {
      ++more;
    }
  }
  if (more > 0) parts.push_back(fmt::format("and {} more", more));
  return parts.empty() ? std::string() : fmt::format("left out of each record: {}", fmt::join(parts, ", "));
}

std::string describe_reading(const Source& source) {
  constexpr std::size_t kMaxClasses = 6;
  const SourceInfo& info = source.info();
  std::string text = info.name + ": ";
  auto add = [&, first = true](const std::string& part) mutable {
    if (part.empty()) return;
    text += (first ? "" : "; ") + part;
    first = false;
  };
  add(source.format());
  add(info.reading);
  std::vector<std::string> taken;
  for (const SourceColumn& column : info.columns) {
    if (!column.field.empty()) taken.push_back(fmt::format("{} from {}", column.field, column.name));
  }
  add(fmt::format("{}", fmt::join(taken, ", ")));
  const auto label = std::ranges::find(info.fields, "label", &Field::name);
  if (!info.classes.empty()) {
    const std::span<const std::string> some =
        std::span(info.classes).first(std::min(info.classes.size(), kMaxClasses));
    add(fmt::format("{} {}: {}{}", with_commas(info.classes.size()),
                    info.classes.size() == 1 ? "class" : "classes", fmt::join(some, ", "),
                    some.size() < info.classes.size() ? ", ..." : ""));
  } else {
    add(label == info.fields.end()    ? "no labels"
        : label->dtype == DType::kF32 ? "labels: numbers to predict"
        : label->shape.rank() == 0    ? "labels: integers"
                                      : "labels: arrays");
  }
  add(describe(info.left_out));
  add(describe(info.columns));
  return text;
}

SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin) {
  source->origin_ = std::move(origin);
  return source;
}

SourcePtr with_format(SourcePtr source, std::string format) {
  source->format_ = std::move(format);
  return source;
}

}  // namespace headrace
