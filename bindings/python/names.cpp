#include "headrace/bindings/python/names.h"

#include <span>

namespace headrace::python {

DType dtype_of(std::string_view name) { return choose<DType>("dtype", name); }

FieldTuple to_tuple(const Field& field) {
  const auto extents = field.shape.extents();
  std::optional<std::string> layout;
  if (field.layout) layout = choice_names(*field.layout).at(static_cast<std::size_t>(*field.layout));
  return {field.name,
          to_string(field.dtype),
          {extents.begin(), extents.end()},
          field.encoding == Encoding::kImage,
          std::move(layout)};
}

Field to_field(const FieldTuple& tuple) {
  const auto& [name, dtype, extents, encoded, layout] = tuple;
  Field field{.name = name,
              .dtype = dtype_of(dtype),
              .shape = Shape(std::span<const std::int64_t>(extents)),
              .encoding = encoded ? Encoding::kImage : Encoding::kRaw};
  if (layout) field.layout = choose<ImageLayout>("layout", *layout);
  return field;
}

std::vector<FieldTuple> to_tuples(const Fields& fields) {
  std::vector<FieldTuple> tuples;
  for (const Field& field : fields) tuples.push_back(to_tuple(field));
  return tuples;
}

Fields to_fields(const std::vector<FieldTuple>& tuples) {
  Fields fields;
  for (const FieldTuple& tuple : tuples) fields.push_back(to_field(tuple));
  return fields;
}

}  // namespace headrace::python
