// One replica's forward passes over several views of a batch.
#pragma once

#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/graph.h"
#include "headrace/train/step/program.h"

namespace headrace {

// REQUIRES: the program outlives it.
class ViewEnsemble {
 public:
  // Throws ConfigError if the net has no image among its inputs, or an image that is no larger than a shift.
  ViewEnsemble(const Graph& graph, const Program& program, const ProgramBinding& binding,
               const std::vector<View>& views);

  // Submits the passes over the batch in the program's inputs; may be captured. Returns where the weighted sums of
  // the program's results will be, in their order.
  std::vector<TensorView> forward(const ProgramBinding& binding) const;

 private:
  struct Image {
    int layer = 0;
    Buffer copy;  // of the batch's images as they are
  };

  void add_images(const Graph& graph, const ProgramBinding& binding);

  const Program* program_;
  std::vector<View> views_;
  std::vector<Image> images_;
  // The sum over the views of one result, and one view's share of it.
  struct Sum {
    Shape shape;
    Buffer sum, scaled;
  };
  std::vector<Sum> sums_;  // by result
};

}  // namespace headrace
