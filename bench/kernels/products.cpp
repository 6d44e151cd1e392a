// GFLOP/s of convolutions and dense layers, forward with bias and ReLU.
#include <vector>

#include "headrace/bench/kernels/rows.h"

namespace headrace {
namespace {

struct Conv {
  std::int64_t in, out, side, batch;
};

void conv(const Target& target, benchmark::State& state, const Conv& c, Pass pass, Precision precision) {
  DeviceBench bench(target.device());
  const ConvOptions options{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .precision = precision};
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({c.batch, c.side, c.side, c.in}, type);
  const TensorView y = bench.random({c.batch, c.side, c.side, c.out}, type);
  const TensorView weights = bench.random({c.out, 3, 3, c.in}), bias = bench.random({c.out});
  bench.time(state, [&] {
    Stream& stream = bench.stream();
    switch (pass) {
      case Pass::kForward:
        return bench.kernels().conv_forward(stream, {x, weights, bias, y, options, Activation::kRelu});
      case Pass::kBackwardData: return bench.kernels().conv_backward_data(stream, {y, weights, x, options});
      case Pass::kBackwardWeights:
        return bench.kernels().conv_backward_weights(stream, {x, y, weights, bias, options});
    }
  });
  count_flops(state, target, 18.0 * static_cast<double>(c.batch * c.side * c.side * c.in * c.out), precision);
}

struct Dense {
  std::int64_t rows, inputs, outputs;
};

void dense(const Target& target, benchmark::State& state, const Dense& d, Pass pass, Precision precision) {
  DeviceBench bench(target.device());
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({d.rows, d.inputs}, type), y = bench.random({d.rows, d.outputs}, type);
  const TensorView weights = bench.random({d.outputs, d.inputs}), bias = bench.random({d.outputs});
  bench.time(state, [&] {
    Stream& stream = bench.stream();
    switch (pass) {
      case Pass::kForward:
        return bench.kernels().dense_forward(stream, {x, weights, bias, y, Activation::kRelu, precision});
      case Pass::kBackwardData: return bench.kernels().dense_backward_data(stream, {y, weights, x, precision});
      case Pass::kBackwardWeights:
        return bench.kernels().dense_backward_weights(stream, {x, y, weights, bias, precision});
    }
  });
  count_flops(state, target, 2.0 * static_cast<double>(d.rows * d.inputs * d.outputs), precision);
}

// Of recipe cifar10-cnn, for a processor.
const std::vector<Conv> kHostConvs = {{3, 32, 32, 256},  {32, 32, 32, 256}, {32, 64, 16, 256},
                                      {64, 64, 16, 256}, {64, 128, 8, 256}, {128, 128, 8, 256}};
// Of recipe cifar10-fast, for a GPU.
const std::vector<Conv> kDeviceConvs = {
    {24, 64, 31, 2000}, {64, 64, 15, 2000}, {64, 256, 15, 2000}, {256, 256, 7, 2000}, {256, 256, 3, 2000}};
const std::vector<Dense> kHostDense = {
    {32, 784, 256}, {32, 256, 256}, {32, 256, 10}, {512, 784, 256}, {512, 256, 256}};
const std::vector<Dense> kDeviceDense = {{2000, 256, 10}, {8192, 1024, 1024}};

}  // namespace

void add_products(const Target& target) {
  for (const Precision precision : {Precision::kBF16, Precision::kF32}) {
    for (const Pass pass : {Pass::kForward, Pass::kBackwardData, Pass::kBackwardWeights}) {
      const auto named = [&](const char* kind, const std::string& sizes) {
        return fmt::format("{}/{}/{}/{}", kind, name_of(precision), kPassNames[static_cast<int>(pass)], sizes);
      };
      for (const Conv& c : target.on_host() ? kHostConvs : kDeviceConvs) {
        add(named("conv3x3", fmt::format("{}->{}@{}x{}", c.in, c.out, c.side, c.batch)),
            [&target, c, pass, precision](benchmark::State& state) { conv(target, state, c, pass, precision); });
      }
      for (const Dense& d : target.on_host() ? kHostDense : kDeviceDense) {
        add(named("dense", fmt::format("{}x{}x{}", d.rows, d.inputs, d.outputs)),
            [&target, d, pass, precision](benchmark::State& state) { dense(target, state, d, pass, precision); });
      }
    }
  }
}

}  // namespace headrace
