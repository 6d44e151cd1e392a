#include "headrace/devices/cpu/math/onednn_dense.h"

#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/sums.h"

// Why matmul, in GFLOP/s on one thread of an Ice Lake core (f32, rows x inputs x outputs; forward / backward data
// / backward weights), with sgemm and inner_product beside it:
//   32x784x256   matmul 117/110/132   sgemm 117/124/136   inner_product on blocked weights  88/ 69/ 65
//   32x256x256   matmul 120/159/149   sgemm 115/157/136   inner_product on blocked weights  96/ 78/ 79
//   512x784x256  matmul 157/ - / -    sgemm 131/158/113   inner_product on blocked weights 153/121/ 91
//   512x256x256  matmul 161/ - / -    sgemm 146/159/144   inner_product on blocked weights 156/138/104
// It also takes the bias, and bf16, in the same call.

namespace headrace {
namespace {

using dnnl::memory;

memory::desc matrix(std::int64_t rows, std::int64_t columns, memory::data_type type, Layout layout) {
  return {{rows, columns}, type, layout == Layout::kRows ? memory::format_tag::ab : memory::format_tag::ba};
}

OneDnnPlan make_product_plan(const OneDnn& onednn, const Product& product) {
  constexpr auto f32 = memory::data_type::f32;
  OneDnnPlan plan;
  plan.source = matrix(product.m, product.k, product.type, product.a);
  plan.weights = matrix(product.k, product.n, product.type, product.b);
  plan.result = matrix(product.m, product.n, product.result, Layout::kRows);
  if (product.bias != nullptr) plan.bias = matrix(1, product.n, f32, Layout::kRows);
  const dnnl::matmul::desc description =
      product.bias != nullptr ? dnnl::matmul::desc(plan.source, plan.weights, plan.bias, plan.result)
                              : dnnl::matmul::desc(plan.source, plan.weights, plan.result);
  const dnnl::matmul::primitive_desc chosen(description, attributes(), onednn.engine());
  plan.scratchpad = chosen.scratchpad_desc();
  plan.primitive = dnnl::matmul(chosen);
  return plan;
}

std::shared_ptr<const OneDnnPlan> plan_of(OneDnn& onednn, const Product& product) {
  const OneDnn::Key key{0,
                        product.m,
                        product.k,
                        product.n,
                        static_cast<std::int64_t>(product.a),
                        static_cast<std::int64_t>(product.b),
                        static_cast<std::int64_t>(product.type),
                        static_cast<std::int64_t>(product.result),
                        product.bias != nullptr};
  return onednn.plan(key, [&] { return make_product_plan(onednn, product); });
}

std::vector<OneDnnProgram::Argument> product_arguments(OneDnnProgram& program, const OneDnnPlan& plan,
                                                       const Product& product, Place a, Place b, Place result) {
  return {{DNNL_ARG_SRC, plan.source, a},
          {DNNL_ARG_WEIGHTS, plan.weights, b},
          {DNNL_ARG_BIAS, plan.bias, {.pointer = const_cast<float*>(product.bias)}},
          {DNNL_ARG_DST, plan.result, result},
          {DNNL_ARG_SCRATCHPAD, plan.scratchpad, program.reserve(plan.scratchpad.get_size())}};
}

Place moved(const Place& place, std::size_t bytes) {
  if (place.pointer == nullptr) return {.offset = place.offset + bytes};
  return {.pointer = static_cast<std::byte*>(place.pointer) + bytes};
}

std::size_t bytes_of_rows(std::int64_t rows, std::int64_t columns, memory::data_type type) {
  return static_cast<std::size_t>(rows * columns) * dnnl_data_type_size(memory::convert_to_c(type));
}

void add_column_sums(OneDnnProgram& program, const Operand& dy, float* dbias, const DenseShape& shape) {
  if (dbias == nullptr) return;
  program.add([=, rows = shape.rows, columns = shape.outputs](std::byte* workspace) {
    cpu::with_type(dy.type, [&]<typename T>(T) {
      cpu::column_sums(static_cast<const T*>(dy.place.in(workspace)), dbias, rows, columns);
    });
  });
}

}  // namespace

void add_product(OneDnnProgram& program, OneDnn& onednn, const Product& product, Place a, Place b, Place result) {
  const auto plan = plan_of(onednn, product);
  program.add(plan->primitive, product_arguments(program, *plan, product, a, b, result));
}

void add_reproducible_product(OneDnnProgram& program, OneDnn& onednn, const Product& product, Place a, Place b,
                              Place result) {
  if (has_avx512()) return add_product(program, onednn, product, a, b, result);
  constexpr std::int64_t kRows = 32;
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, std::int64_t rows) {
    if (begin == end) return;
    Product part = product;
    part.m = rows;
    const auto plan = plan_of(onednn, part);
    std::vector<std::vector<OneDnnProgram::Argument>> calls;
    for (std::int64_t row = begin; row < end; row += rows) {
      calls.push_back(product_arguments(program, *plan, part,
                                        moved(a, bytes_of_rows(row, product.k, product.type)), b,
                                        moved(result, bytes_of_rows(row, product.n, product.result))));
    }
    program.add_single_threaded(plan->primitive, calls);
  };
  const std::int64_t whole = product.m / kRows * kRows;
  add_rows(0, whole, kRows);
  add_rows(whole, product.m, product.m - whole);
}

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
