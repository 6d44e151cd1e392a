// GB/s of batch normalisation in training, alone and with what is fused into it.
#include <utility>

#include "headrace/bench/kernels/rows.h"

namespace headrace {
namespace {

kernel::BatchNorm norm_of(DeviceBench& bench, Activation activation = Activation::kNone) {
  const auto vector = [&] { return bench.random({kChannels}); };
  return {.gamma = vector(),
          .beta = vector(),
          .running_mean = vector(),
          .running_var = vector(),
          .saved_mean = vector(),
          .saved_inv_std = vector(),
          .activation = activation};
}

void batch_norm(const Target& target, benchmark::State& state, Pass pass, DType type) {
  DeviceBench bench(target.device());
  const Shape batch = images_of(target, kSide);
  const TensorView x = bench.random(batch, type), y = bench.random(batch, type), dx = bench.empty(batch, type);
  const kernel::BatchNorm norm = norm_of(bench);
  const TensorView dgamma = bench.random({kChannels}), dbeta = bench.random({kChannels});
  const StepScalars* scalars = bench.constant(StepScalars{.rows = target.images()});
  bench.time(state, [&] {
    if (pass == Pass::kForward) return bench.kernels().batch_norm_train(bench.stream(), {x, y, norm, scalars});
    bench.kernels().batch_norm_backward(bench.stream(), {x, y, dgamma, dbeta, dx, norm, scalars});
  });
  count_bytes(state, target, bytes_of(target, type) * (pass == Pass::kForward ? 3 : 5));
}

enum class Fusion { kApart, kFused };

// Batch normalisation and the activation after it: two calls and what lies between them in memory, or one call.
void norm_and_activation(const Target& target, benchmark::State& state, Activation which, Pass pass, Fusion fusion,
                         DType type) {
  DeviceBench bench(target.device());
  const Shape batch = images_of(target, kSide);
  const TensorView x = bench.random(batch, type), y = bench.random(batch, type), dx = bench.empty(batch, type);
  const TensorView normalized = bench.random(batch, type);
  const kernel::BatchNorm norm = norm_of(bench, fusion == Fusion::kFused ? which : Activation::kNone);
  const TensorView dgamma = bench.random({kChannels}), dbeta = bench.random({kChannels});
  const StepScalars* scalars = bench.constant(StepScalars{.rows = target.images()});
  bench.time(state, [&] {
    Stream& stream = bench.stream();
    Kernels& kernels = bench.kernels();
    if (pass == Pass::kForward) {
      kernels.batch_norm_train(stream, {x, y, norm, scalars});
      if (fusion == Fusion::kApart) kernels.activation_forward(stream, {which, y, y});
      return;
    }
    if (fusion == Fusion::kApart) kernels.activation_backward(stream, {which, normalized, y, dx});
    kernels.batch_norm_backward(stream, {x, fusion == Fusion::kApart ? dx : y, dgamma, dbeta, dx, norm, scalars});
  });
  count_bytes(state, target, bytes_of(target, type) * (pass == Pass::kForward ? 3 : 5));
}

// Max pooling, batch normalisation and GELU as one call, as the groups of cifar10-fast have them.
void pooled_norm(const Target& target, benchmark::State& state, Pass pass, DType type) {
  DeviceBench bench(target.device());
  const Shape half = images_of(target, kSide / 2);
  const TensorView x = bench.random(images_of(target, kSide), type), y = bench.random(half, type);
  const TensorView pooled = bench.random(half, type);
  const kernel::MaxPool pool{.options = {}, .argmax = bench.empty(half, DType::kU8)};
  const kernel::BatchNorm norm = norm_of(bench, Activation::kGelu);
  const TensorView dgamma = bench.random({kChannels}), dbeta = bench.random({kChannels});
  const StepScalars* scalars = bench.constant(StepScalars{.rows = target.images()});
  bench.time(state, [&] {
    Kernels& kernels = bench.kernels();
    if (pass == Pass::kForward) {
      return kernels.max_pool_batch_norm_train(bench.stream(), {x, pooled, y, pool, norm, scalars});
    }
    kernels.max_pool_batch_norm_backward(bench.stream(), {pooled, y, dgamma, dbeta, x, pool, norm, scalars});
  });
  // Forward x once, what is pooled written and read, y; backward dy and what is pooled twice each, dx.
  count_bytes(state, target,
              bytes_of(target, type) * (pass == Pass::kForward ? 1.75 : 2) + bytes_of(target, DType::kU8) / 4);
}

void add_of(const Target& target, DType type) {
  for (const Pass pass : {Pass::kForward, Pass::kBackwardData}) {
    const auto named = [&](const std::string& what) {
      return fmt::format("{}{}/{}", what, suffix_of(type), pass == Pass::kForward ? "forward" : "backward");
    };
    add(named("batch_norm"),
        [&target, pass, type](benchmark::State& state) { batch_norm(target, state, pass, type); });
    for (const auto& [name, fusion] : {std::pair{"apart", Fusion::kApart}, {"fused", Fusion::kFused}}) {
      for (const auto& [activation, which] :
           {std::pair{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"silu", Activation::kSilu}}) {
        add(named(fmt::format("batch_norm_{}_{}", activation, name)),
            [&target, which, pass, fusion, type](benchmark::State& state) {
              norm_and_activation(target, state, which, pass, fusion, type);
            });
      }
    }
    add(named("max_pool_batch_norm_gelu"),
        [&target, pass, type](benchmark::State& state) { pooled_norm(target, state, pass, type); });
  }
}

}  // namespace

void add_norms(const Target& target) {
  const DType half = target.device().kernels()->activation_type(Precision::kBF16);
  if (half != DType::kF32) add_of(target, half);
  add_of(target, DType::kF32);
}

}  // namespace headrace
