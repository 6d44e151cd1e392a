#include "headrace/devices/cpu/math/onednn_muon.h"

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn_dense.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/sums.h"

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
  program->add([=](std::byte* workspace) { cpu::begin_muon(arena, options, floats(places.x, workspace)); });
  for (int i = 0; i < options.iterations; ++i) add_iteration(*program, onednn, places, options);
  program->add(
      [=](std::byte* workspace) { cpu::finish_muon(arena, options, *scalars, floats(places.x, workspace)); });
  return program;
}

}  // namespace headrace
