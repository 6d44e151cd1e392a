#include "headrace/devices/cpu/onednn_dense.h"

#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/elementwise.h"

// Why matmul, in GFLOP/s on one thread of an Ice Lake core (f32, rows x inputs x outputs; forward / backward data
// / backward weights), with sgemm and inner_product beside it:
//   32x784x256   matmul 117/110/132   sgemm 117/124/136   inner_product on blocked weights  88/ 69/ 65
//   32x256x256   matmul 120/159/149   sgemm 115/157/136   inner_product on blocked weights  96/ 78/ 79
//   512x784x256  matmul 157/ - / -    sgemm 131/158/113   inner_product on blocked weights 153/121/ 91
//   512x256x256  matmul 161/ - / -    sgemm 146/159/144   inner_product on blocked weights 156/138/104
// It also takes the bias and the ReLU, and bf16, in the same call.

namespace headrace {
namespace {

using dnnl::memory;

enum class Layout : std::int64_t { kRows, kColumns };  // the storage order of a matrix given as (rows, columns)

// result (m, n) = a (m, k) times b (k, n)
struct Product {
  std::int64_t m = 0, k = 0, n = 0;
  Layout a = Layout::kRows, b = Layout::kRows;
  memory::data_type type = memory::data_type::f32;
  Activation activation = Activation::kNone;
  const float* bias = nullptr;
};

memory::desc matrix(std::int64_t rows, std::int64_t columns, memory::data_type type, Layout layout) {
  return {{rows, columns}, type, layout == Layout::kRows ? memory::format_tag::ab : memory::format_tag::ba};
}

OneDnnPlan make_plan(const OneDnn& onednn, const Product& product) {
  constexpr auto f32 = memory::data_type::f32;
  OneDnnPlan plan;
  plan.source = matrix(product.m, product.k, product.type, product.a);
  plan.weights = matrix(product.k, product.n, product.type, product.b);
  plan.result = matrix(product.m, product.n, f32, Layout::kRows);
  if (product.bias != nullptr) plan.bias = matrix(1, product.n, f32, Layout::kRows);
  const dnnl::matmul::desc description =
      product.bias != nullptr ? dnnl::matmul::desc(plan.source, plan.weights, plan.bias, plan.result)
                              : dnnl::matmul::desc(plan.source, plan.weights, plan.result);
  const dnnl::matmul::primitive_desc chosen(description, attributes(product.activation), onednn.engine());
  plan.scratchpad = chosen.scratchpad_desc();
  plan.primitive = dnnl::matmul(chosen);
  return plan;
}

void add_product(OneDnnProgram& program, OneDnn& onednn, const Product& product, Place a, Place b, float* result) {
  const OneDnn::Key key{0,
                        product.m,
                        product.k,
                        product.n,
                        static_cast<std::int64_t>(product.a),
                        static_cast<std::int64_t>(product.b),
                        static_cast<std::int64_t>(product.type),
                        product.activation == Activation::kRelu,
                        product.bias != nullptr};
  const auto plan = onednn.plan(key, [&] { return make_plan(onednn, product); });
  program.add(plan->primitive,
              {{DNNL_ARG_SRC, plan->source, a},
               {DNNL_ARG_WEIGHTS, plan->weights, b},
               {DNNL_ARG_BIAS, plan->bias, {.pointer = const_cast<float*>(product.bias)}},
               {DNNL_ARG_DST, plan->result, {.pointer = result}},
               {DNNL_ARG_SCRATCHPAD, plan->scratchpad, program.reserve(plan->scratchpad.get_size())}});
}

}  // namespace

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
  add_product(*program, onednn, product, a, b, y);
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
  add_product(*program, onednn, product, a, b, dx);
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
  add_product(*program, onednn, product, a, b, dweights);
  if (dbias != nullptr) {
    program->add([=](std::byte*) { cpu::column_sums(dy, dbias, shape.rows, shape.outputs); });
  }
  return program;
}

}  // namespace headrace
