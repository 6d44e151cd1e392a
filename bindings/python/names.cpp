#include "headrace/bindings/python/names.h"

#include <span>

namespace headrace::python {

DType dtype_of(std::string_view name) {
  return choose<DType>("dtype", name,
                       {{"uint8", DType::kU8},
                        {"int32", DType::kI32},
                        {"int64", DType::kI64},
                        {"float16", DType::kF16},
                        {"bfloat16", DType::kBF16},
                        {"float32", DType::kF32}});
}

FieldTuple to_tuple(const Field& field) {
  const auto extents = field.shape.extents();
  std::optional<std::string> layout;
  if (field.layout) layout = *field.layout == ImageLayout::kChannelsFirst ? "channels_first" : "channels_last";
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
  if (layout) {
    field.layout = choose<ImageLayout>(
        "layout", *layout,
        {{"channels_first", ImageLayout::kChannelsFirst}, {"channels_last", ImageLayout::kChannelsLast}});
  }
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
