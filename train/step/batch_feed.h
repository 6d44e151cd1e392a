// Loads a batch's fields into a program's inputs.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/program.h"

namespace headrace {

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

}  // namespace headrace
