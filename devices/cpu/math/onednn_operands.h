// Passes tensors to oneDNN primitives in the precision of the computation. Private to the CPU backend.
#pragma once

#include <memory>

#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// A kernel bound to its arguments, ready to be submitted.
using BoundKernel = std::shared_ptr<OneDnnProgram>;

// Returns the element type of a primitive's inputs for this precision.
dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision);

// A tensor of the caller: f32, or activations and weights in bf16.
struct Operand {
  Place place;
  DType type = DType::kF32;
};

// Adds an input of `count` elements: in place, or converted in the workspace.
Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& from,
                std::int64_t count);

// The result of a primitive, `count` elements: written in place in the caller's type, or as f32 in the workspace
// if finish() has work to do.
class Result {
 public:
  // finish() applies the activation: oneDNN's own ReLU turns NaN into 0.
  Result(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& to, std::int64_t count,
         Activation activation = Activation::kNone);

  dnnl::memory::data_type type() const noexcept { return type_; }
  const Place& place() const noexcept { return place_; }
  // Adds the steps that remain after the primitive.
  void finish(OneDnnProgram& program) const;

 private:
  Operand to_;
  std::int64_t count_;
  Activation activation_;
  dnnl::memory::data_type type_;
  Place place_;
};

// Returns the attributes of every primitive here: the scratchpad comes from the workspace.
dnnl::primitive_attr attributes();

}  // namespace headrace
