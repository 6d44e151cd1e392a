// How tensors reach a oneDNN primitive in the precision it computes in. Private to the CPU backend.
#pragma once

#include <memory>

#include "headrace/devices/cpu/onednn_program.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// A kernel bound to its arguments, ready to be submitted.
using BoundKernel = std::shared_ptr<OneDnnProgram>;

// The element type in which a primitive takes its inputs for this precision.
dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision);

// `count` f32 elements as the primitive wants them: where they are, or rounded to bf16 in the workspace.
Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, Place from, std::int64_t count);

// Attributes of every primitive here: the scratchpad comes from the workspace. kRelu is fused into the primitive,
// others are a pass of their own.
dnnl::primitive_attr attributes(Activation activation = Activation::kNone);

// Whether the activation is left for add_activation().
constexpr bool needs_pass(Activation activation) noexcept {
  return activation != Activation::kNone && activation != Activation::kRelu;
}

}  // namespace headrace
