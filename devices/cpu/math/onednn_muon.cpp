#include "headrace/devices/cpu/math/onednn_muon.h"

#include <algorithm>

#include "headrace/devices/cpu/math/muon.h"
#include "headrace/devices/cpu/math/onednn_product.h"

namespace headrace {
namespace {

// Where the step's matrices lie in the workspace: x and its change (rows, columns), x x' and its square.
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
  add_product(program, onednn, {.m = rows, .k = columns, .n = rows, .b = Layout::kColumns}, at.x, at.x, at.gram);
  add_product(program, onednn, {.m = rows, .k = rows, .n = rows}, at.gram, at.gram, at.square);
  program.add([=](std::byte* workspace) {
    cpu::combine(options.b, floats(at.gram, workspace), options.c, floats(at.square, workspace), rows * rows);
  });
  add_product(program, onednn, {.m = rows, .k = rows, .n = columns}, at.square, at.x, at.change);
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
