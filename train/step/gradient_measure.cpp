#include "headrace/train/step/gradient_measure.h"

#include <cmath>

#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {

GradientMeasure::GradientMeasure(ModelState& model) : model_(model) {
  for (const Variable& variable : model.layout.variables()) {
    if (!variable.learns()) continue;
    parts_.push_back(
        {.variable = variable.name, .begin = variable.offset, .elements = variable.spec.shape.elements()});
  }
  sums_ = model.strategy->device(0).allocate(parts_.size() * sizeof(GradientNorm));
  submit_and_wait(*model.strategy, [&] { model.strategy->stream(0).fill(sums_.data(), 0, sums_.size()); });
}

void GradientMeasure::submit(Stream& stream, Kernels& kernels, const TensorView& gradients) const {
  stream.fill(sums_.data(), 0, sums_.size());
  auto* sum = reinterpret_cast<GradientNorm*>(sums_.data());
  for (const Part& part : parts_) {
    const TensorView mine{gradients.as<float>() + part.begin, Shape{part.elements}, DType::kF32};
    kernels.add_squares(stream, mine, sum++);
  }
}

GradientNorms GradientMeasure::read() const {
  std::vector<GradientNorm> sums(parts_.size());
  Stream& stream = model_.strategy->stream(0);
  stream.copy(sums.data(), sums_.data(), sums_.size());
  stream.synchronize();
  GradientNorms norms;
  double squares = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    squares += sums[i].squares;
    norms.by_variable.emplace_back(parts_[i].variable, std::sqrt(sums[i].squares));
  }
  norms.all = std::sqrt(squares);
  return norms;
}

}  // namespace headrace
