#include "headrace/pipeline/record.h"

#include "headrace/devices/base/error.h"

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

}  // namespace headrace
