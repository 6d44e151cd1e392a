// GB/s of Adam and SGD over an arena, GFLOP/s of Muon over the matrices of cifar10-fast.
#include <algorithm>
#include <utility>
#include <vector>

#include "headrace/bench/kernels/rows.h"

namespace headrace {
namespace {

enum class Update { kAdam, kSgd };

void optimizer(const Target& target, benchmark::State& state, Update update) {
  DeviceBench bench(target.device());
  const Shape arena{state.range(0)};
  const TensorView p = bench.random(arena), g = bench.random(arena), m = bench.empty(arena),
                   v = bench.empty(arena);
  const StepScalars* scalars = bench.constant(StepScalars{.learning_rates = {1e-6F}, .corrections = {{1, 1}}});
  const UpdateRange<AdamOptions> by_adam[]{{.end = arena.elements()}};
  const UpdateRange<SgdOptions> by_sgd[]{{.end = arena.elements(), .options = {.momentum = 0.9F}}};
  bench.time(state, [&] {
    if (update == Update::kAdam) return bench.kernels().adam(bench.stream(), {p, g, m, v, by_adam, scalars});
    bench.kernels().sgd(bench.stream(), {p, g, m, by_sgd, scalars});
  });
  count_bytes(state, target, (update == Update::kAdam ? 28.0 : 20.0) * static_cast<double>(state.range(0)));
}

// (filters, kernel area x channels) of its convolutions, in their order.
constexpr std::pair<std::int64_t, std::int64_t> kMatrices[] = {{64, 216},   {64, 576},   {256, 576},
                                                               {256, 2304}, {256, 2304}, {256, 2304}};

// X X', A A and (b A + c A A) X, so many times.
double muon_flops(std::int64_t rows, std::int64_t columns, int iterations) {
  const auto narrow = static_cast<double>(std::min(rows, columns));
  const auto wide = static_cast<double>(std::max(rows, columns));
  return iterations * (4 * narrow * narrow * wide + 2 * narrow * narrow * narrow);
}

void muon(const Target& target, benchmark::State& state) {
  DeviceBench bench(target.device());
  const MuonOptions options{
      .momentum = 0.6F, .iterations = 3, .weight_decay = 0, .adjust_rate = MuonRate::kNone, .normalize = true};
  std::vector<MuonMatrix> matrices;
  double flops = 0;
  for (const auto& [rows, columns] : kMatrices) {
    const Shape shape{rows, columns};
    matrices.push_back(
        {.parameters = bench.random(shape), .gradients = bench.random(shape), .velocity = bench.random(shape)});
    flops += muon_flops(rows, columns, options.iterations);
  }
  const StepScalars* scalars = bench.constant(StepScalars{.learning_rates = {1e-6F}});
  bench.time(state, [&] { bench.kernels().muon(bench.stream(), {matrices, options, scalars}); });
  // Its products are the device's faster ones.
  count_flops(state, target, flops, bench.kernels().prefers_bf16() ? Precision::kBF16 : Precision::kF32);
}

}  // namespace

void add_updates(const Target& target) {
  add("muon/cifar10-fast", [&target](benchmark::State& state) { muon(target, state); });
  for (const auto& [name, update] : {std::pair{"adam", Update::kAdam}, {"sgd_momentum", Update::kSgd}}) {
    add(name, [&target, update](benchmark::State& state) { optimizer(target, state, update); })
        ->Arg(269322)
        ->Arg(1 << 24);
  }
}

}  // namespace headrace
