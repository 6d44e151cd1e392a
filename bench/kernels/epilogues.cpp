// What follows a product within its call: the same product without a bias, with one, and with an activation as
// well; and cifar10-fast's whitening, a convolution so small that memory bounds it.
#include <utility>

#include "headrace/bench/kernels/rows.h"

namespace headrace {
namespace {

enum class Bias { kNone, kAdded };

struct Epilogue {
  const char* name;
  Bias bias;
  Activation activation;
};
constexpr Epilogue kEpilogues[] = {{"none", Bias::kNone, Activation::kNone},
                                   {"bias", Bias::kAdded, Activation::kNone},
                                   {"bias_relu", Bias::kAdded, Activation::kRelu},
                                   {"bias_gelu", Bias::kAdded, Activation::kGelu},
                                   {"bias_silu", Bias::kAdded, Activation::kSilu}};

TensorView bias_of(DeviceBench& bench, Bias bias, std::int64_t features) {
  return bias == Bias::kAdded ? bench.random({features}) : TensorView{};
}

// 3x3, 64 channels to 64, as in the first group of cifar10-fast.
void conv_epilogue(const Target& target, benchmark::State& state, const Epilogue& epilogue, Precision precision) {
  constexpr std::int64_t kConvSide = 15, kFeatures = 64;
  DeviceBench bench(target.device());
  const ConvOptions options{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .precision = precision};
  const DType type = bench.kernels().activation_type(precision);
  const Shape images{target.images(), kConvSide, kConvSide, kFeatures};
  const TensorView x = bench.random(images, type), y = bench.empty(images, type);
  const TensorView weights = bench.random({kFeatures, 3, 3, kFeatures});
  const TensorView bias = bias_of(bench, epilogue.bias, kFeatures);
  bench.time(state, [&] {
    bench.kernels().conv_forward(bench.stream(), {x, weights, bias, y, options, epilogue.activation});
  });
  count_flops(state, target, 18.0 * static_cast<double>(images.elements() * kFeatures), precision);
}

void dense_epilogue(const Target& target, benchmark::State& state, const Epilogue& epilogue, Precision precision) {
  DeviceBench bench(target.device());
  const std::int64_t rows = target.on_host() ? 512 : 8192, features = target.on_host() ? 256 : 1024;
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({rows, features}, type), y = bench.empty({rows, features}, type);
  const TensorView weights = bench.random({features, features}), bias = bias_of(bench, epilogue.bias, features);
  bench.time(state, [&] {
    bench.kernels().dense_forward(bench.stream(), {x, weights, bias, y, epilogue.activation, precision});
  });
  count_flops(state, target, 2.0 * static_cast<double>(rows * features * features), precision);
}

// 2x2, 3 channels to 24, with bias and GELU; of its gradients only the bias's is asked for.
void whitening(const Target& target, benchmark::State& state, Pass pass, Precision precision) {
  DeviceBench bench(target.device());
  const ConvOptions options{.precision = precision};
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({target.images(), 32, 32, 3}, type);
  const TensorView y = bench.random({target.images(), 31, 31, 24}, type);
  const TensorView weights = bench.random({24, 2, 2, 3}), bias = bench.random({24});
  bench.time(state, [&] {
    if (pass == Pass::kForward) {
      return bench.kernels().conv_forward(bench.stream(), {x, weights, bias, y, options, Activation::kGelu});
    }
    bench.kernels().conv_backward_weights(bench.stream(), {x, y, {}, bias, options});
  });
  count_bytes(state, target, static_cast<double>(y.bytes() + (pass == Pass::kForward ? x.bytes() : 0)));
}

}  // namespace

void add_epilogues(const Target& target) {
  for (const Precision precision : {Precision::kBF16, Precision::kF32}) {
    for (const Epilogue& epilogue : kEpilogues) {
      add(fmt::format("conv_epilogue/{}/{}", name_of(precision), epilogue.name),
          [&target, &epilogue, precision](benchmark::State& state) {
            conv_epilogue(target, state, epilogue, precision);
          });
      add(fmt::format("dense_epilogue/{}/{}", name_of(precision), epilogue.name),
          [&target, &epilogue, precision](benchmark::State& state) {
            dense_epilogue(target, state, epilogue, precision);
          });
    }
    for (const auto& [name, pass] :
         {std::pair{"forward_gelu", Pass::kForward}, {"backward_bias", Pass::kBackwardWeights}}) {
      add(fmt::format("whitening/{}/{}", name_of(precision), name),
          [&target, pass, precision](benchmark::State& state) { whitening(target, state, pass, precision); });
    }
  }
}

}  // namespace headrace
