// How tensors reach a oneDNN primitive in the precision it computes in. Private to the CPU backend.
#pragma once

#include <memory>

#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// A kernel bound to its arguments, ready to be submitted.
using BoundKernel = std::shared_ptr<OneDnnProgram>;

// The element type in which a primitive takes its inputs for this precision.
dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision);

// What the caller hands over: f32, or activations and weights in bf16.
struct Operand {
  Place place;
  DType type = DType::kF32;
};

// `count` elements as the primitive wants them: where they are, or converted in the workspace.
Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& from,
                std::int64_t count);

// What a primitive writes for `count` elements that the caller wants: there and in that type, or f32 in the
// workspace where they are not complete yet.
class Result {
 public:
  // `activation` is the caller's; what attributes() leaves out of the primitive is done by finish().
  Result(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& to, std::int64_t count,
         Activation activation = Activation::kNone);

  dnnl::memory::data_type type() const noexcept { return type_; }
  const Place& place() const noexcept { return place_; }
  // Adds what is left to do after the primitive.
  void finish(OneDnnProgram& program) const;

 private:
  Operand to_;
  std::int64_t count_;
  Activation left_;
  dnnl::memory::data_type type_;
  Place place_;
};

// Attributes of every primitive here: the scratchpad comes from the workspace. kRelu is fused into the primitive,
// others are a pass of their own, Result::finish().
dnnl::primitive_attr attributes(Activation activation = Activation::kNone);

}  // namespace headrace
