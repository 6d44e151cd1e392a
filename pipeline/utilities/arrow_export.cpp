// Batches as Arrow's structs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/arrow_structs.h"

namespace headrace {
namespace {

const char* arrow_format(const Field& field, DType dtype) {
  switch (dtype) {
    case DType::kU8: return "C";
    case DType::kI32: return "i";
    case DType::kI64: return "l";
    case DType::kF16: return "e";
    case DType::kF32: return "f";
    case DType::kBF16: break;
  }
  throw ConfigError(fmt::format("the batch's field '{}' is bfloat16, which Arrow does not have", field.name),
                    "cast it to float32");
}

// A schema with the memory that it points to; its children are released by their own release().
struct ExportedSchema {
  std::string format, name, metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> places;

  static void release(ArrowSchema* schema) {
    auto* exported = static_cast<ExportedSchema*>(schema->private_data);
    for (ArrowSchema& child : exported->children) {
      if (child.release != nullptr) child.release(&child);
    }
    delete exported;
    schema->release = nullptr;
  }

  static void fill(std::unique_ptr<ExportedSchema> exported, ArrowSchema* schema) {
    for (ArrowSchema& child : exported->children) exported->places.push_back(&child);
    *schema = {};
    schema->format = exported->format.c_str();
    schema->name = exported->name.c_str();
    schema->metadata = exported->metadata.empty() ? nullptr : exported->metadata.data();
    schema->n_children = std::ssize(exported->children);
    schema->children = exported->places.data();
    schema->release = release;
    schema->private_data = exported.release();
  }
};

// An array with the memory that it points to, and with the batch. Children may be moved out and live longer.
struct ExportedArray {
  explicit ExportedArray(SharedBatch shared) : batch(std::move(shared)) {}

  SharedBatch batch;
  std::array<const void*, 2> buffers{};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> places;

  static void release(ArrowArray* array) {
    auto* exported = static_cast<ExportedArray*>(array->private_data);
    for (ArrowArray& child : exported->children) {
      if (child.release != nullptr) child.release(&child);
    }
    delete exported;
    array->release = nullptr;
  }

  static void fill(std::unique_ptr<ExportedArray> exported, std::int64_t length, std::int64_t buffers,
                   ArrowArray* array) {
    for (ArrowArray& child : exported->children) exported->places.push_back(&child);
    *array = {};
    array->length = length;
    array->n_buffers = buffers;
    array->buffers = exported->buffers.data();
    array->n_children = std::ssize(exported->children);
    array->children = exported->places.data();
    array->release = release;
    array->private_data = exported.release();
  }
};

std::string metadata_of(const std::vector<std::pair<std::string, std::string>>& entries) {
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

void export_field_schema(const Field& field, const TensorView& tensor, ArrowSchema* schema) {
  auto exported = std::make_unique<ExportedSchema>();
  exported->name = field.name;
  const Shape shape = tensor.shape.without_front();
  if (shape.rank() == 0) {
    exported->format = arrow_format(field, tensor.dtype);
  } else {
    exported->format = fmt::format("+w:{}", shape.elements());
    auto elements = std::make_unique<ExportedSchema>();
    elements->format = arrow_format(field, tensor.dtype);
    elements->name = "item";
    ExportedSchema::fill(std::move(elements), &exported->children.emplace_back());
  }
  if (shape.rank() > 1) {
    exported->metadata = metadata_of(
        {{"ARROW:extension:name", "arrow.fixed_shape_tensor"},
         {"ARROW:extension:metadata", fmt::format(R"({{"shape":[{}]}})", fmt::join(shape.extents(), ","))}});
  }
  ExportedSchema::fill(std::move(exported), schema);
}

void export_field_array(const SharedBatch& batch, const TensorView& tensor, std::int64_t rows, ArrowArray* array) {
  auto exported = std::make_unique<ExportedArray>(batch);
  if (tensor.shape.rank() == 1) {
    exported->buffers[1] = tensor.data;
    return ExportedArray::fill(std::move(exported), rows, 2, array);
  }
  auto elements = std::make_unique<ExportedArray>(batch);
  elements->buffers[1] = tensor.data;
  ExportedArray::fill(std::move(elements), rows * tensor.shape.without_front().elements(), 2,
                      &exported->children.emplace_back());
  ExportedArray::fill(std::move(exported), rows, 1, array);
}

// A ragged field is a list of its entries.
void export_list_schema(const Field& field, const TensorView& values, ArrowSchema* schema) {
  auto exported = std::make_unique<ExportedSchema>();
  exported->name = field.name;
  exported->format = "+L";
  export_field_schema({.name = "item", .dtype = field.dtype, .shape = field.shape}, values,
                      &exported->children.emplace_back());
  ExportedSchema::fill(std::move(exported), schema);
}

void export_list_array(const SharedBatch& batch, const RaggedTensor& ragged, ArrowArray* array) {
  const TensorView& values = batch->tensors()[ragged.values];
  auto exported = std::make_unique<ExportedArray>(batch);
  exported->buffers[1] = batch->tensors()[ragged.offsets].data;
  export_field_array(batch, values, values.shape[0], &exported->children.emplace_back());
  ExportedArray::fill(std::move(exported), batch->examples(), 2, array);
}

void export_field(const SharedBatch& batch, std::size_t index, ExportedSchema& schema, ExportedArray& array) {
  const Field& field = batch->fields()[index];
  const TensorView& tensor = batch->tensors()[index];
  const auto ragged = batch->ragged();
  if (std::ranges::find(ragged, index, &RaggedTensor::offsets) != ragged.end()) return;  // part of its list
  const auto list = std::ranges::find(ragged, index, &RaggedTensor::values);
  ArrowSchema* const schema_to = &schema.children.emplace_back();
  ArrowArray* const array_to = &array.children.emplace_back();
  if (list != ragged.end()) {
    export_list_schema(field, tensor, schema_to);
    return export_list_array(batch, *list, array_to);
  }
  export_field_schema(field, tensor, schema_to);
  export_field_array(batch, tensor, batch->examples(), array_to);
}

}  // namespace

void export_arrow(const SharedBatch& batch, ArrowSchema* schema, ArrowArray* array) {
  if (!batch->device().info().host_memory) {
    throw ConfigError(fmt::format("the batch is in the memory of {}", batch->device().info().name),
                      "Arrow takes batches of CPU replicas; a GPU's are handed over by DLPack");
  }
  const Fields& fields = batch->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) arrow_format(fields[i], batch->tensors()[i].dtype);
  auto root = std::make_unique<ExportedSchema>();
  root->format = "+s";
  auto record = std::make_unique<ExportedArray>(batch);
  for (std::size_t i = 0; i < fields.size(); ++i) export_field(batch, i, *root, *record);
  batch->ready().wait();
  ExportedSchema::fill(std::move(root), schema);
  ExportedArray::fill(std::move(record), batch->examples(), 1, array);
}

}  // namespace headrace
