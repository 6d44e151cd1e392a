#include "headrace/train/step/batch_feed.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

void check_input(const Field& field, const Shape& wanted) {
  if (!(field.shape == wanted)) {
    throw ConfigError(fmt::format("field '{}' of the data has shape {}, the net's input wants {}", field.name,
                                  field.shape.to_string(), wanted.to_string()),
                      joined({"map the data to that shape",
                              advice("build the net with the data's fields: {}", named("BuildOptions::fields"))}));
  }
  if (field.dtype != DType::kF32 && field.dtype != DType::kU8 && field.dtype != DType::kI64) {
    throw ConfigError(fmt::format("field '{}' of the data is {}; a net takes float32, uint8 or int64", field.name,
                                  to_string(field.dtype)),
                      "cast it to float32 in the data set");
  }
}

}  // namespace

std::int64_t rows_of_batches(const Loader& loader) {
  if (loader.dataset().is_ragged()) {
    throw ConfigError("the batches of ragged_batch() differ in shape, and a net is compiled for one",
                      "use padded_batch()");
  }
  if (!loader.dataset().has_buckets()) return loader.local_rows();
  throw ConfigError("the batches of bucket_by_length() differ in shape, and a net is compiled for one",
                    "use padded_batch(), or filter() one range of lengths and train on that");
}

BatchFeed::BatchFeed(const ModelState& model, const Fields& fields) { find_inputs(*model.graph, fields); }

void BatchFeed::find_inputs(const Graph& graph, const Fields& fields) {
  for (int id = 0; id < graph.size(); ++id) {
    const Layer& layer = graph.layer(id);
    if (layer.kind() != "input") continue;
    const Field& field = fields[find_field(fields, layer.name())];
    check_input(field, layer.shape());
    inputs_.push_back({.layer = id, .field = field.name, .dtype = field.dtype});
  }
}

void BatchFeed::load(const Batch& batch, const Program& program, const ProgramBinding& binding,
                     std::vector<MemoryCopy>& copies) const {
  for (const Input& input : inputs_) load_input(input, batch.tensor(input.field), program, binding, copies);
}

void BatchFeed::warm_up(const Program& program, const ProgramBinding& binding) const {
  for (const Input& input : inputs_) {
    const Shape& shape = program.value(binding, input.layer).shape;
    const Buffer zeros =
        binding.stream.allocate(static_cast<std::size_t>(shape.elements()) * size_of(input.dtype));
    binding.stream.fill(zeros.data(), 0, zeros.size());
    std::vector<MemoryCopy> copies;
    load_input(input, zeros.view(shape, input.dtype), program, binding, copies);
    binding.stream.copy_together(copies);
  }
}

void BatchFeed::load_input(const Input& input, const TensorView& from, const Program& program,
                           const ProgramBinding& binding, std::vector<MemoryCopy>& copies) {
  const TensorView to = program.value(binding, input.layer);
  if (from.dtype == to.dtype) {
    copies.push_back({.to = to.data, .from = from.data, .bytes = to.bytes()});
    return;
  }
  if (input.dtype == DType::kF32)
    return binding.kernels.convert(binding.stream, {from.data, to.shape, from.dtype}, to);
  const float factor = input.dtype == DType::kU8 ? 1.0F / 255.0F : 1.0F;
  binding.kernels.scale(binding.stream, {from.data, to.shape, input.dtype}, factor, to);
}

}  // namespace headrace
