#include "headrace/train/step/view_ensemble.h"

#include <cstdlib>

#include "headrace/devices/base/error.h"

namespace headrace {

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
      binding.kernels.shift_images(stream, image.copy.view(value.shape, value.dtype), views_[i].shift, value);
    }
    program_->forward(binding);
    const std::vector<TensorView> results = program_->results(binding);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const TensorView share = i == 0 ? sums[k] : sums_[k].scaled.view(sums_[k].shape, DType::kF32);
      binding.kernels.scale(stream, results[k], views_[i].weight, share);
      if (i > 0) binding.kernels.accumulate(stream, share, sums[k]);
    }
  }
  return sums;
}

}  // namespace headrace
