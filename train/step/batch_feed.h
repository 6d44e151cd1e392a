// Brings a batch's fields to where a program reads them.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/program.h"

namespace headrace {

// Floats are copied, u8 becomes x / 255; f32 and that are rounded where the program stores its inputs in bf16.
class BatchFeed {
 public:
  // ConfigError where the data's fields do not fit the net.
  BatchFeed(const ModelState& model, const Fields& fields);

  // To the binding's stream, where the batch has arrived: submits what is converted, adds what is only copied to
  // `copies`, of device memory, for the caller to submit.
  void load(const Batch& batch, const Program& program, const ProgramBinding& binding,
            std::vector<MemoryCopy>& copies) const;

  // Submits all of that with a batch of zeros.
  void warm_up(const Program& program, const ProgramBinding& binding) const;

 private:
  struct Input {
    int layer = 0;
    std::string field;
    DType dtype = DType::kF32;  // of the field; a device that made f32 of bytes may have rounded it to bf16
  };

  void find_inputs(const Graph& graph, const Fields& fields);
  static void load_input(const Input& input, const TensorView& from, const Program& program,
                         const ProgramBinding& binding, std::vector<MemoryCopy>& copies);

  std::vector<Input> inputs_;
};

}  // namespace headrace
