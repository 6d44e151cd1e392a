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

}  // namespace headrace
