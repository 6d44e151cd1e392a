#include <algorithm>
#include <cmath>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn_products.h"
#include "headrace/devices/cpu/math/parallel.h"

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

namespace headrace::cpu {
namespace {

constexpr std::int64_t kMuonGrain = row_grain(1);

// u = gradient g + velocity v
struct UpdateShares {
  explicit UpdateShares(const MuonOptions& options)
      : gradient(options.nesterov ? 1.0F : 0.0F), velocity(options.nesterov ? options.momentum : 1.0F) {}

  float gradient, velocity;
};

HEADRACE_SIMD_MATH void muon_momentum_range(const float* __restrict gradients, float* __restrict velocity,
                                            float* __restrict update, float momentum, const UpdateShares& shares,
                                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = momentum * velocity[i] + gradients[i];
    velocity[i] = v;
    update[i] = shares.gradient * gradients[i] + shares.velocity * v;
  }
}

HEADRACE_SIMD_MATH void combine_range(float b, const float* __restrict x, float c, float* __restrict y,
                                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = b * x[i] + c * y[i];
}

HEADRACE_SIMD_MATH void scale_range(float factor, float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

// Returns the factor that scales the parameters to the norm sqrt(rows); 1 if they are all 0.
float norm_scale(const MuonArena& arena) {
  const double norm = std::sqrt(sum_of_squares(arena.parameters, arena.rows * arena.columns));
  return norm > 0 ? static_cast<float>(std::sqrt(static_cast<double>(arena.rows)) / norm) : 1.0F;
}

// A tall matrix's update is stored by columns.
void momentum_transposed(const MuonArena& arena, float momentum, const UpdateShares& shares, float* x) {
  for (std::int64_t row = 0; row < arena.rows; ++row) {
    for (std::int64_t column = 0; column < arena.columns; ++column) {
      const std::int64_t at = row * arena.columns + column;
      const float v = momentum * arena.velocity[at] + arena.gradients[at];
      arena.velocity[at] = v;
      x[column * arena.rows + row] = shares.gradient * arena.gradients[at] + shares.velocity * v;
    }
  }
}

void move_transposed(const MuonArena& arena, float factor, float rate, const float* x) {
  for (std::int64_t row = 0; row < arena.rows; ++row) {
    for (std::int64_t column = 0; column < arena.columns; ++column) {
      float& parameter = arena.parameters[row * arena.columns + column];
      parameter = factor * parameter - rate * x[column * arena.rows + row];
    }
  }
}

}  // namespace

void begin_muon(const MuonArena& arena, const MuonOptions& options, float* x) {
  const std::int64_t count = arena.rows * arena.columns;
  const UpdateShares shares(options);
  if (arena.tall()) {
    momentum_transposed(arena, options.momentum, shares, x);
  } else {
    parallel_ranges(count, kMuonGrain, [&](std::int64_t begin, std::int64_t end) {
      muon_momentum_range(arena.gradients + begin, arena.velocity + begin, x + begin, options.momentum, shares,
                          end - begin);
    });
  }
  const double norm = std::sqrt(sum_of_squares(x, count)) + static_cast<double>(options.epsilon);
  scale_range(static_cast<float>(1 / norm), x, count);
}

void combine(float b, const float* gram, float c, float* square, std::int64_t count) {
  parallel_ranges(count, kMuonGrain, [=](std::int64_t begin, std::int64_t end) {
    combine_range(b, gram + begin, c, square + begin, end - begin);
  });
}

void scale_add(float a, float* x, const float* y, std::int64_t count) {
  parallel_ranges(count, kMuonGrain, [=](std::int64_t begin, std::int64_t end) {
    combine_range(1.0F, y + begin, a, x + begin, end - begin);
  });
}

void finish_muon(const MuonArena& arena, const MuonOptions& options, const StepScalars& scalars, const float* x) {
  const std::int64_t count = arena.rows * arena.columns;
  const float rate = scalars.learning_rates[options.group];
  const bool keeps_norm = !options.normalize || (scalars.kept_norms >> options.group & 1) != 0;
  const float step = rate * muon_rate_factor(options.adjust_rate, arena.rows, arena.columns);
  const float factor = (keeps_norm ? 1.0F : norm_scale(arena)) * (1.0F - rate * options.weight_decay);
  if (arena.tall()) {
    move_transposed(arena, factor, step, x);
  } else {
    parallel_ranges(count, kMuonGrain, [&](std::int64_t begin, std::int64_t end) {
      combine_range(-step, x + begin, factor, arena.parameters + begin, end - begin);
    });
  }
  if (arena.rounded != nullptr) to_bf16(arena.parameters, arena.rounded, count);
}

}  // namespace headrace::cpu

namespace headrace {
namespace {

// The step's matrices in the workspace: x and its change (rows, columns), x x' and its square.
struct MuonPlaces {
  std::int64_t rows = 0, columns = 0;
  Place x = {}, change = {}, gram = {}, square = {};
};

float* floats(Place place, std::byte* workspace) { return static_cast<float*>(place.in(workspace)); }

MuonPlaces reserve(OneDnnProgram& program, const cpu::MuonArena& arena) {
  MuonPlaces places{.rows = std::min(arena.rows, arena.columns), .columns = std::max(arena.rows, arena.columns)};
  const auto wide = static_cast<std::size_t>(places.rows * places.columns) * sizeof(float);
  const auto square = static_cast<std::size_t>(places.rows * places.rows) * sizeof(float);
  places.x = program.reserve(wide);
  places.change = program.reserve(wide);
  places.gram = program.reserve(square);
  places.square = program.reserve(square);
  return places;
}

// x = a x + (b A + c A A) x, A = x x'
void add_iteration(OneDnnProgram& program, OneDnn& onednn, const MuonPlaces& at, const MuonOptions& options) {
  const std::int64_t rows = at.rows, columns = at.columns;
  add_reproducible_product(program, onednn, {.m = rows, .k = columns, .n = rows, .b = Layout::kColumns}, at.x,
                           at.x, at.gram);
  add_reproducible_product(program, onednn, {.m = rows, .k = rows, .n = rows}, at.gram, at.gram, at.square);
  program.add([=](std::byte* workspace) {
    cpu::combine(options.b, floats(at.gram, workspace), options.c, floats(at.square, workspace), rows * rows);
  });
  add_reproducible_product(program, onednn, {.m = rows, .k = rows, .n = columns}, at.square, at.x, at.change);
  program.add([=](std::byte* workspace) {
    cpu::scale_add(options.a, floats(at.x, workspace), floats(at.change, workspace), rows * columns);
  });
}

}  // namespace

BoundKernel muon_update(OneDnn& onednn, const MuonMatrix& matrix, const MuonOptions& options,
                        const StepScalars* scalars) {
  const std::int64_t rows = matrix.parameters.shape[0];
  const cpu::MuonArena arena{.parameters = matrix.parameters.as<float>(),
                             .gradients = matrix.gradients.as<float>(),
                             .velocity = matrix.velocity.as<float>(),
                             .rounded = matrix.rounded.as<BFloat16>(),
                             .rows = rows,
                             .columns = matrix.parameters.elements() / rows};
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const MuonPlaces places = reserve(*program, arena);
  program->add([=](std::byte* workspace) {
    if (!scalars->failed()) cpu::begin_muon(arena, options, floats(places.x, workspace));
  });
  for (int i = 0; i < options.iterations; ++i) add_iteration(*program, onednn, places, options);
  program->add([=](std::byte* workspace) {
    if (!scalars->failed()) cpu::finish_muon(arena, options, *scalars, floats(places.x, workspace));
  });
  return program;
}

}  // namespace headrace
