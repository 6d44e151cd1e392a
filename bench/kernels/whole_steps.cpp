// Steps a second of a whole small training step.
#include <vector>

#include "headrace/bench/kernels/rows.h"

namespace headrace {
namespace {

// 784-256-256-10 with Adam: forward, loss, backward, update as one captured launch.
void mlp_step(const Target& target, benchmark::State& state) {
  DeviceBench bench(target.device());
  const std::int64_t rows = state.range(0);
  constexpr std::int64_t kSizes[] = {784, 256, 256, 10};
  constexpr std::int64_t kParameters = 784 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10;
  const TensorView parameters = bench.random({kParameters}), gradients = bench.empty({kParameters});
  const TensorView first = bench.empty({kParameters}), second = bench.empty({kParameters});
  const TensorView labels = bench.empty({rows}, DType::kI64);
  std::vector<TensorView> x{bench.random({rows, 784})}, dx{{}}, weights, biases, dweights, dbiases;
  std::int64_t at = 0;
  const auto slice = [&](const TensorView& arena, const Shape& shape) {
    return TensorView{arena.as<float>() + at, shape, DType::kF32};
  };
  for (int layer = 0; layer < 3; ++layer) {
    const Shape matrix{kSizes[layer + 1], kSizes[layer]}, vector{kSizes[layer + 1]};
    weights.push_back(slice(parameters, matrix));
    dweights.push_back(slice(gradients, matrix));
    at += matrix.elements();
    biases.push_back(slice(parameters, vector));
    dbiases.push_back(slice(gradients, vector));
    at += vector.elements();
    x.push_back(bench.empty({rows, kSizes[layer + 1]}));
    dx.push_back(bench.empty({rows, kSizes[layer + 1]}));
  }
  const StepScalars* scalars = bench.constant(StepScalars{.rows = rows,
                                                          .inverse_global_rows = 1.0F / static_cast<float>(rows),
                                                          .learning_rates = {1e-6F},
                                                          .corrections = {{1, 1}}});
  MetricSums* sums = bench.constant(MetricSums{});
  const UpdateRange<AdamOptions> whole[]{{.end = kParameters}};
  bench.time(state, [&] {
    Kernels& k = bench.kernels();
    Stream& stream = bench.stream();
    for (std::size_t i = 0; i < 3; ++i) {
      k.dense_forward(stream, {x[i], weights[i], biases[i], x[i + 1],
                               i < 2 ? Activation::kRelu : Activation::kNone, Precision::kF32});
    }
    k.softmax_cross_entropy(stream, {x[3], labels, dx[3], 0, scalars, sums});
    for (std::size_t i = 3; i-- > 0;) {
      k.dense_backward_weights(stream, {x[i], dx[i + 1], dweights[i], dbiases[i], Precision::kF32});
      if (i == 0) break;
      k.dense_backward_data(stream, {dx[i + 1], weights[i], dx[i], Precision::kF32});
      k.activation_backward(stream, {Activation::kRelu, x[i], dx[i], dx[i]});
    }
    k.adam(stream, {parameters, gradients, first, second, whole, scalars});
  });
  state.counters["steps/s"] = benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

void add_whole_steps(const Target& target) {
  add("mlp_step", [&target](benchmark::State& state) { mlp_step(target, state); })->Arg(32)->Arg(512);
}

}  // namespace headrace
