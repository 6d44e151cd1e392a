// Loads a program's inputs from a batch: its fields, or several views of its images.
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/graph.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/program.h"

namespace headrace {

// Loads a batch's fields into a program's inputs.

// Copies floats and turns u8 into x / 255; rounds both if the program stores its inputs in bf16.
class BatchFeed {
 public:
  // Throws ConfigError if the data's fields do not fit the net, by shape, type or layout.
  BatchFeed(const ModelState& model, const Fields& fields);

  // Submits conversions to the binding's stream, where the batch has arrived, and adds plain copies within device
  // memory to `copies` for the caller to submit.
  void load(const Batch& batch, const Program& program, const ProgramBinding& binding,
            std::vector<MemoryCopy>& copies) const;

  // Submits the same work with a batch of zeros.
  void warm_up(const Program& program, const ProgramBinding& binding) const;

 private:
  struct Input {
    int layer = 0;
    std::string field;
    DType dtype = DType::kF32;  // of the field; bytes that a device made f32 of may have been rounded to bf16
  };

  static void load_input(const Input& input, const TensorView& from, const Program& program,
                         const ProgramBinding& binding, std::vector<MemoryCopy>& copies);

  std::vector<Input> inputs_;
};

// Throws ConfigError if an image does not come as (height, width, channels), along which views are moved.
void want_images_for_views(const Graph& graph, const Fields& fields);

// Returns the rows of every batch of the loader. Throws ConfigError if its batches differ in shape.
std::int64_t rows_of_batches(const Loader& loader);

// One replica's forward passes over several views of a batch.

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
