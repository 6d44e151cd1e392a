#include "headrace/devices/cpu/onednn_dense.h"

#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/elementwise.h"
#include "headrace/devices/cpu/onednn_product.h"

// Why matmul, in GFLOP/s on one thread of an Ice Lake core (f32, rows x inputs x outputs; forward / backward data
// / backward weights), with sgemm and inner_product beside it:
//   32x784x256   matmul 117/110/132   sgemm 117/124/136   inner_product on blocked weights  88/ 69/ 65
//   32x256x256   matmul 120/159/149   sgemm 115/157/136   inner_product on blocked weights  96/ 78/ 79
//   512x784x256  matmul 157/ - / -    sgemm 131/158/113   inner_product on blocked weights 153/121/ 91
//   512x256x256  matmul 161/ - / -    sgemm 146/159/144   inner_product on blocked weights 156/138/104
// It also takes the bias and the ReLU, and bf16, in the same call.

namespace headrace {

BoundKernel dense_forward(OneDnn& onednn, const DenseShape& shape, float* x, float* weights, float* bias, float* y,
                          Activation activation) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Place a = add_input(*program, onednn, shape.precision, {.pointer = x}, shape.rows * shape.inputs);
  const Place b = add_input(*program, onednn, shape.precision, {.pointer = weights}, shape.outputs * shape.inputs);
  const Product product{.m = shape.rows,
                        .k = shape.inputs,
                        .n = shape.outputs,
                        .b = Layout::kColumns,
                        .type = input_type(onednn, shape.precision),
                        .activation = activation,
                        .bias = bias};
  add_product(*program, onednn, product, a, b, {.pointer = y});
  if (needs_pass(activation)) {
    program->add([=, count = shape.rows * shape.outputs](std::byte*) { cpu::activate(activation, y, y, count); });
  }
  return program;
}

BoundKernel dense_backward_data(OneDnn& onednn, const DenseShape& shape, float* dy, float* weights, float* dx) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Place a = add_input(*program, onednn, shape.precision, {.pointer = dy}, shape.rows * shape.outputs);
  const Place b = add_input(*program, onednn, shape.precision, {.pointer = weights}, shape.outputs * shape.inputs);
  const Product product{
      .m = shape.rows, .k = shape.outputs, .n = shape.inputs, .type = input_type(onednn, shape.precision)};
  add_product(*program, onednn, product, a, b, {.pointer = dx});
  return program;
}

BoundKernel dense_backward_weights(OneDnn& onednn, const DenseShape& shape, float* x, float* dy, float* dweights,
                                   float* dbias) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Place a = add_input(*program, onednn, shape.precision, {.pointer = dy}, shape.rows * shape.outputs);
  const Place b = add_input(*program, onednn, shape.precision, {.pointer = x}, shape.rows * shape.inputs);
  const Product product{.m = shape.outputs,
                        .k = shape.rows,
                        .n = shape.inputs,
                        .a = Layout::kColumns,
                        .type = input_type(onednn, shape.precision)};
  add_product(*program, onednn, product, a, b, {.pointer = dweights});
  if (dbias != nullptr) {
    program->add([=](std::byte*) { cpu::column_sums(dy, dbias, shape.rows, shape.outputs); });
  }
  return program;
}

}  // namespace headrace
