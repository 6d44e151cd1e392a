#include "headrace/train/step/batch_feed.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr const char* kTurn =
    "nets take (height, width, channels): leave to_layout(channels_first) out, or put to_layout(channels_last) "
    "after "
    "it";

bool comes_in_planes(const Field& field) {
  return field.shape.rank() == 3 &&
         (layout_of(field) == ImageLayout::kChannelsFirst || has_doubtful_layout(field));
}

[[noreturn]] void refuse_planes(const Field& field, const std::string& who) {
  const bool said = field.layout.has_value();
  throw ConfigError(
      fmt::format("field '{}' of the data, {}, {}, and {} takes (height, width, channels)", field.name,
                  field.shape.to_string(),
                  said ? "has the channels first"
                       : "has the shape of an image with the channels first, and nothing says where they are",
                  who),
      said ? kTurn
           : "put layout_is(channels_first) | to_layout(channels_last) last in the chain, or "
             "layout_is(channels_last) if they are last; from_arrays() takes layout");
}

void check_input(const Field& field, const Shape& wanted) {
  if (!(field.shape == wanted)) {
    const Shape& shape = field.shape;
    const bool turned = comes_in_planes(field) && Shape{shape[1], shape[2], shape[0]} == wanted;
    throw ConfigError(
        fmt::format("field '{}' of the data has shape {}, the net's input wants {}", field.name, shape.to_string(),
                    wanted.to_string()),
        turned ? kTurn
               : joined({"map the data to that shape",
                         advice("build the net with the data's fields: {}", named("BuildOptions::fields"))}));
  }
  if (field.dtype != DType::kF32 && field.dtype != DType::kU8 && field.dtype != DType::kI64) {
    throw ConfigError(fmt::format("field '{}' of the data is {}; a net takes float32, uint8 or int64", field.name,
                                  to_string(field.dtype)),
                      "cast it to float32 in the data set");
  }
}

// Layers that work on pixels, on the features of the last axis, and on each element.
const std::set<std::string, std::less<>> kOfPixels{
    "average_pool", "conv", "conv_transpose", "depthwise_conv", "global_average_pool", "max_pool"};
const std::set<std::string, std::less<>> kOfFeatures{"attention", "batch_norm", "concat",
                                                     "dense",     "layer_norm", "softmax"};
const std::set<std::string, std::less<>> kOfElements{
    "add", "dropout", "elu", "gelu", "leaky_relu", "relu", "scale", "silu", "softplus", "sigmoid", "tanh"};

// Refuses an image with the channels first where a built-in layer would take another axis for them. Flattening
// keeps the order of the elements, which is the user's; a custom layer says nothing of its axes, and what follows
// it is not looked at.
void check_layout(const ModelState& model, int input, const Field& field) {
  if (!comes_in_planes(field)) return;
  const Graph& graph = *model.graph;
  std::vector<bool> reached(static_cast<std::size_t>(graph.size()));
  reached[static_cast<std::size_t>(input)] = true;
  for (int id = input; id < graph.size(); ++id) {  // layers follow their inputs
    if (!reached[static_cast<std::size_t>(id)]) continue;
    for (const int next : graph.consumers(id)) {
      const std::string kind = graph.layer(next).kind();
      const std::string who = label(graph.name(next), kind);
      if (kOfPixels.contains(kind) || (field.layout && kOfFeatures.contains(kind))) refuse_planes(field, who);
      if (kind == "flatten" && model.turned_flattened) refuse_planes(field, who + " with weights from PyTorch");
      const bool follows = kOfElements.contains(kind) || kOfFeatures.contains(kind);
      reached[static_cast<std::size_t>(next)] = reached[static_cast<std::size_t>(next)] || follows;
    }
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

void want_images_for_views(const Graph& graph, const Fields& fields) {
  for (int id = 0; id < graph.size(); ++id) {
    if (graph.layer(id).kind() != "input") continue;
    const Field& field = fields[find_field(fields, graph.layer(id).name())];
    if (comes_in_planes(field)) refuse_planes(field, "a view");
  }
}

BatchFeed::BatchFeed(const ModelState& model, const Fields& fields) {
  const Graph& graph = *model.graph;
  for (int id = 0; id < graph.size(); ++id) {
    const Layer& layer = graph.layer(id);
    if (layer.kind() != "input") continue;
    const Field& field = fields[find_field(fields, layer.name())];
    check_input(field, layer.shape());
    check_layout(model, id, field);
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
    return binding.kernels.convert(binding.stream, {{from.data, to.shape, from.dtype}, to});
  const float factor = input.dtype == DType::kU8 ? 1.0F / 255.0F : 1.0F;
  binding.kernels.scale(binding.stream, {{from.data, to.shape, input.dtype}, to, factor});
}

ViewEnsemble::ViewEnsemble(const Graph& graph, const Program& program, const ProgramBinding& binding,
                           const std::vector<View>& views)
    : program_(&program), views_(views) {
  add_images(graph, binding);
  for (const TensorView& result : program.results(binding)) {
    sums_.push_back({.shape = result.shape,
                     .sum = binding.stream.allocate(result.bytes()),
                     .scaled = binding.stream.allocate(result.bytes())});
  }
}

void ViewEnsemble::add_images(const Graph& graph, const ProgramBinding& binding) {
  for (int id = 0; id < graph.size(); ++id) {
    const Layer& layer = graph.layer(id);
    if (layer.kind() != "input" || layer.shape().rank() != 3) continue;
    for (const View& view : views_) {
      if (std::abs(view.shift.down) < layer.shape()[0] && std::abs(view.shift.right) < layer.shape()[1]) continue;
      throw ConfigError(
          "a view moves images of shape " + layer.shape().to_string() + " by as much as they measure",
          "use smaller shifts");
    }
    images_.push_back({.layer = id, .copy = binding.stream.allocate(program_->value(binding, id).bytes())});
  }
  if (images_.empty()) {
    throw ConfigError("there are views to evaluate, but no input of the net is an image (height, width, channels)",
                      "leave the views out");
  }
}

std::vector<TensorView> ViewEnsemble::forward(const ProgramBinding& binding) const {
  Stream& stream = binding.stream;
  for (const Image& image : images_) {
    const TensorView value = program_->value(binding, image.layer);
    stream.copy(image.copy.data(), value.data, value.bytes());
  }
  std::vector<TensorView> sums;
  for (const Sum& each : sums_) sums.push_back(each.sum.view(each.shape, DType::kF32));
  for (std::size_t i = 0; i < views_.size(); ++i) {
    for (const Image& image : images_) {
      const TensorView value = program_->value(binding, image.layer);
      binding.kernels.shift_images(stream, {image.copy.view(value.shape, value.dtype), value, views_[i].shift});
    }
    program_->forward(binding);
    const std::vector<TensorView> results = program_->results(binding);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const TensorView share = i == 0 ? sums[k] : sums_[k].scaled.view(sums_[k].shape, DType::kF32);
      binding.kernels.scale(stream, {results[k], share, views_[i].weight});
      if (i > 0) binding.kernels.accumulate(stream, {share, sums[k]});
    }
  }
  return sums;
}

}  // namespace headrace
