#include "headrace/devices/cpu/math/onednn_batched.h"

#include <bit>

#include "headrace/devices/common/matrix_batch.h"

namespace headrace {
namespace {

using dnnl::memory;

constexpr std::int64_t kBatchedKey = -1;  // first in a plan's key; dense products and convolutions have others

// The matrices of an operand or the result, in the type that the primitive sees.
struct BatchedSide {
  MatrixBatch batch;
  bool transposed = false;
  memory::data_type type = memory::data_type::f32;

  memory::desc layout() const {
    const memory::dims by_rows{batch.row_step, 1}, by_columns{1, batch.row_step};
    return transposed ? memory::desc({batch.columns, batch.rows}, type, by_columns)
                      : memory::desc({batch.rows, batch.columns}, type, by_rows);
  }
  // Returns the place of a matrix within the tensor at `place`.
  Place matrix(const Place& place, std::int64_t outer, std::int64_t inner) const {
    const auto elements = static_cast<std::size_t>(outer * batch.outer_step + inner * batch.inner_step);
    const std::size_t bytes = elements * memory::data_type_size(type);
    if (place.pointer == nullptr) return {.offset = place.offset + bytes};
    return {.pointer = static_cast<std::byte*>(place.pointer) + bytes};
  }
  void add_to(OneDnn::Key& key) const {
    key.insert(key.end(),
               {batch.rows, batch.columns, batch.row_step, transposed, static_cast<std::int64_t>(type)});
  }
};

dnnl::primitive_attr batched_attributes(float alpha) {
  dnnl::primitive_attr with = attributes();
  if (alpha == 1.0F) return with;
  dnnl::post_ops after;
  after.append_eltwise(1.0F, dnnl::algorithm::eltwise_linear, alpha, 0.0F);
  with.set_post_ops(after);
  return with;
}

std::shared_ptr<const OneDnnPlan> batched_plan(OneDnn& onednn, const BatchedSide& a, const BatchedSide& b,
                                               float alpha, const BatchedSide& result) {
  OneDnn::Key key{kBatchedKey, std::bit_cast<std::int32_t>(alpha)};
  for (const BatchedSide* side : {&a, &b, &result}) side->add_to(key);
  return onednn.plan(key, [&] {
    OneDnnPlan plan;
    plan.source = a.layout();
    plan.weights = b.layout();
    plan.result = result.layout();
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(plan.source, plan.weights, plan.result),
                                              batched_attributes(alpha), onednn.engine());
    plan.scratchpad = chosen.scratchpad_desc();
    plan.primitive = dnnl::matmul(chosen);
    return plan;
  });
}

Operand operand_of(const TensorView& view) { return {.place = {.pointer = view.data}, .type = view.dtype}; }

}  // namespace

BoundKernel batched_matmul(OneDnn& onednn, const Kernels::Matrices& a, const Kernels::Matrices& b, float alpha,
                           const Kernels::Matrices& result, Precision precision) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const auto input = [&](const TensorView& view) {
    return add_input(*program, onednn, precision, operand_of(view), view.elements());
  };
  const Place from_a = input(a.tensor), from_b = input(b.tensor);
  const Result to(*program, onednn, precision, operand_of(result.tensor), result.tensor.elements());
  const memory::data_type inputs = input_type(onednn, precision);
  const BatchedSide of_a{matrix_batch(a), a.transposed, inputs}, of_b{matrix_batch(b), b.transposed, inputs},
      of_result{matrix_batch(result), false, to.type()};
  const auto plan = batched_plan(onednn, of_a, of_b, alpha, of_result);
  std::vector<std::vector<OneDnnProgram::Argument>> calls;
  for (std::int64_t outer = 0; outer < of_result.batch.outer; ++outer) {
    for (std::int64_t inner = 0; inner < of_result.batch.inner; ++inner) {
      calls.push_back({{DNNL_ARG_SRC, plan->source, of_a.matrix(from_a, outer, inner)},
                       {DNNL_ARG_WEIGHTS, plan->weights, of_b.matrix(from_b, outer, inner)},
                       {DNNL_ARG_DST, plan->result, of_result.matrix(to.place(), outer, inner)},
                       {DNNL_ARG_SCRATCHPAD, plan->scratchpad, program->reserve(plan->scratchpad.get_size())}});
    }
  }
  program->add_single_threaded(plan->primitive, calls);
  to.finish(*program);
  return program;
}

}  // namespace headrace
