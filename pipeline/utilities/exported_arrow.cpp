#include "headrace/pipeline/utilities/exported_arrow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

template <typename Exported, typename Struct>
void release_exported(Struct* given) {
  auto* exported = static_cast<Exported*>(given->private_data);
  for (Struct& child : exported->children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete exported;
  given->release = nullptr;
}

std::string arrow_metadata(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string bytes;
  const auto add = [&](std::int32_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(static_cast<std::int32_t>(entries.size()));
  for (const auto& [key, value] : entries) {
    for (const std::string& text : {key, value}) {
      add(static_cast<std::int32_t>(text.size()));
      bytes += text;
    }
  }
  return bytes;
}

}  // namespace

const char* arrow_format(const std::string& name, DType dtype) {
  switch (dtype) {
    case DType::kU8: return "C";
    case DType::kI32: return "i";
    case DType::kI64: return "l";
    case DType::kF16: return "e";
    case DType::kF32: return "f";
    case DType::kBF16: break;
  }
  throw ConfigError(fmt::format("the batch's field '{}' is bfloat16, which Arrow does not have", name),
                    "cast it to float32");
}

void ExportedSchema::fill(std::unique_ptr<ExportedSchema> exported, ArrowSchema* schema) {
  for (ArrowSchema& child : exported->children) exported->places.push_back(&child);
  *schema = {};
  schema->format = exported->format.c_str();
  schema->name = exported->name.c_str();
  schema->metadata = exported->metadata.empty() ? nullptr : exported->metadata.data();
  schema->flags = exported->flags;
  schema->n_children = std::ssize(exported->children);
  schema->children = exported->places.data();
  schema->release = release_exported<ExportedSchema, ArrowSchema>;
  schema->private_data = exported.release();
}

void ExportedArray::fill(std::unique_ptr<ExportedArray> exported, std::int64_t length, std::int64_t buffers,
                         ArrowArray* array) {
  for (ArrowArray& child : exported->children) exported->places.push_back(&child);
  *array = {};
  array->length = length;
  array->null_count = exported->nulls;
  array->n_buffers = buffers;
  array->buffers = exported->buffers.data();
  array->n_children = std::ssize(exported->children);
  array->children = exported->places.data();
  array->release = release_exported<ExportedArray, ArrowArray>;
  array->private_data = exported.release();
}

void export_numbers_schema(const std::string& name, DType dtype, const Shape& shape, std::int64_t flags,
                           ArrowSchema* schema) {
  auto exported = std::make_unique<ExportedSchema>();
  exported->name = name;
  exported->flags = flags;
  if (shape.rank() == 0) {
    exported->format = arrow_format(name, dtype);
  } else {
    exported->format = fmt::format("+w:{}", shape.elements());
    auto elements = std::make_unique<ExportedSchema>();
    elements->format = arrow_format(name, dtype);
    elements->name = "item";
    ExportedSchema::fill(std::move(elements), &exported->children.emplace_back());
  }
  if (shape.rank() > 1) {
    exported->metadata = arrow_metadata(
        {{"ARROW:extension:name", "arrow.fixed_shape_tensor"},
         {"ARROW:extension:metadata", fmt::format(R"({{"shape":[{}]}})", fmt::join(shape.extents(), ","))}});
  }
  ExportedSchema::fill(std::move(exported), schema);
}

void export_numbers(std::unique_ptr<ExportedArray> exported, const void* data, const Shape& shape,
                    std::int64_t rows, ArrowArray* array) {
  if (shape.rank() == 0) {
    exported->buffers[1] = data;
    return ExportedArray::fill(std::move(exported), rows, 2, array);
  }
  auto elements = std::make_unique<ExportedArray>();
  elements->owner = exported->owner;
  elements->buffers[1] = data;
  ExportedArray::fill(std::move(elements), rows * shape.elements(), 2, &exported->children.emplace_back());
  ExportedArray::fill(std::move(exported), rows, 1, array);
}

}  // namespace headrace
