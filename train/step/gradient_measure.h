// The norms of a step's gradients, computed on a replica's device.
#pragma once

#include <string>
#include <vector>

#include "headrace/train/callbacks.h"
#include "headrace/train/model/model_state.h"

namespace headrace {

// Of the first replica's gradients, which once they are summed are those of all.
class GradientMeasure {
 public:
  explicit GradientMeasure(ModelState& model);

  // Submits to its stream; may be captured.
  void submit(Stream& stream, Kernels& kernels, const TensorView& gradients) const;
  // Of the last step that was submitted, which is waited for.
  GradientNorms read() const;

 private:
  struct Part {
    std::string variable;
    std::int64_t begin = 0, elements = 0;
  };

  ModelState& model_;
  std::vector<Part> parts_;  // in layer order
  Buffer sums_;              // a GradientNorm each
};

}  // namespace headrace
