#include "headrace/devices/cpu/math/onednn_dense.h"

#include "headrace/devices/cpu/math/column_sums.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/onednn_product.h"

// Why matmul, in GFLOP/s on one thread of an Ice Lake core (f32, rows x inputs x outputs; forward / backward data
// / backward weights), with sgemm and inner_product beside it:
//   32x784x256   matmul 117/110/132   sgemm 117/124/136   inner_product on blocked weights  88/ 69/ 65
//   32x256x256   matmul 120/159/149   sgemm 115/157/136   inner_product on blocked weights  96/ 78/ 79
//   512x784x256  matmul 157/ - / -    sgemm 131/158/113   inner_product on blocked weights 153/121/ 91
//   512x256x256  matmul 161/ - / -    sgemm 146/159/144   inner_product on blocked weights 156/138/104
// It also takes the bias and the ReLU, and bf16, in the same call.

namespace headrace {
namespace {

void add_column_sums(OneDnnProgram& program, const Operand& dy, float* dbias, const DenseShape& shape) {
  if (dbias == nullptr) return;
  program.add([=, rows = shape.rows, columns = shape.outputs](std::byte* workspace) {
    cpu::with_type(dy.type, [&]<typename T>(T) {
      cpu::column_sums(static_cast<const T*>(dy.place.in(workspace)), dbias, rows, columns);
    });
  });
}

}  // namespace

BoundKernel dense_forward(OneDnn& onednn, const DenseShape& shape, const Operand& x, const Operand& weights,
                          float* bias, const Operand& y, Activation activation) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Place a = add_input(*program, onednn, shape.precision, x, shape.rows * shape.inputs);
  const Place b = add_input(*program, onednn, shape.precision, weights, shape.outputs * shape.inputs);
  const Result result(*program, onednn, shape.precision, y, shape.rows * shape.outputs, activation);
  const Product product{.m = shape.rows,
                        .k = shape.inputs,
                        .n = shape.outputs,
                        .b = Layout::kColumns,
                        .type = input_type(onednn, shape.precision),
                        .result = result.type(),
                        .activation = activation,
                        .bias = bias};
  add_product(*program, onednn, product, a, b, result.place());
  result.finish(*program);
  return program;
}

BoundKernel dense_backward_data(OneDnn& onednn, const DenseShape& shape, const Operand& dy, const Operand& weights,
                                const Operand& dx) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Place a = add_input(*program, onednn, shape.precision, dy, shape.rows * shape.outputs);
  const Place b = add_input(*program, onednn, shape.precision, weights, shape.outputs * shape.inputs);
  const Result result(*program, onednn, shape.precision, dx, shape.rows * shape.inputs);
  const Product product{.m = shape.rows,
                        .k = shape.outputs,
                        .n = shape.inputs,
                        .type = input_type(onednn, shape.precision),
                        .result = result.type()};
  add_product(*program, onednn, product, a, b, result.place());
  result.finish(*program);
  return program;
}

BoundKernel dense_backward_weights(OneDnn& onednn, const DenseShape& shape, const Operand& x, const Operand& dy,
                                   float* dweights, float* dbias) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const Place a = add_input(*program, onednn, shape.precision, dy, shape.rows * shape.outputs);
  const Place b = add_input(*program, onednn, shape.precision, x, shape.rows * shape.inputs);
  const Product product{.m = shape.outputs,
                        .k = shape.rows,
                        .n = shape.inputs,
                        .a = Layout::kColumns,
                        .type = input_type(onednn, shape.precision)};
  add_product(*program, onednn, product, a, b, {.pointer = dweights});
  add_column_sums(*program, dy, dbias, shape);
  return program;
}

}  // namespace headrace
