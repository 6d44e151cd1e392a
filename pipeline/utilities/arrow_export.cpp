// Batches as Arrow's structs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/arrow_structs.h"
#include "headrace/pipeline/utilities/exported_arrow.h"

namespace headrace {
namespace {

std::unique_ptr<ExportedArray> exported_of(const SharedBatch& batch) {
  auto exported = std::make_unique<ExportedArray>();
  exported->owner = std::make_shared<const SharedBatch>(batch);
  return exported;
}

// A ragged field is a list of its entries.
void export_list_schema(const Field& field, const TensorView& values, ArrowSchema* schema) {
  auto exported = std::make_unique<ExportedSchema>();
  exported->name = field.name;
  exported->format = "+L";
  export_numbers_schema("item", values.dtype, values.shape.without_front(), 0, &exported->children.emplace_back());
  ExportedSchema::fill(std::move(exported), schema);
}

void export_list_array(const SharedBatch& batch, const RaggedTensor& ragged, ArrowArray* array) {
  const TensorView& values = batch->tensors()[ragged.values];
  auto exported = exported_of(batch);
  exported->buffers[1] = batch->tensors()[ragged.offsets].data;
  export_numbers(exported_of(batch), values.data, values.shape.without_front(), values.shape[0],
                 &exported->children.emplace_back());
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
  const Shape shape = tensor.shape.without_front();
  export_numbers_schema(field.name, tensor.dtype, shape, 0, schema_to);
  export_numbers(exported_of(batch), tensor.data, shape, batch->examples(), array_to);
}

}  // namespace

void export_arrow(const SharedBatch& batch, ArrowSchema* schema, ArrowArray* array) {
  if (!batch->device().info().host_memory) {
    throw ConfigError(fmt::format("the batch is in the memory of {}", batch->device().info().name),
                      "Arrow takes batches of CPU replicas; a GPU's are handed over by DLPack");
  }
  const Fields& fields = batch->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) arrow_format(fields[i].name, batch->tensors()[i].dtype);
  auto root = std::make_unique<ExportedSchema>();
  root->format = "+s";
  auto record = exported_of(batch);
  for (std::size_t i = 0; i < fields.size(); ++i) export_field(batch, i, *root, *record);
  batch->ready().wait();
  ExportedSchema::fill(std::move(root), schema);
  ExportedArray::fill(std::move(record), batch->examples(), 1, array);
}

}  // namespace headrace
