// The mathematics of one device: GFLOP/s of convolutions and dense layers, GB/s of what memory bounds, steps/s of
// a whole small training step. The device is that of --device=SPEC or $HEADRACE_DEVICES, else one CPU replica. The
// counter `roofline` is the share of the floor that was measured first (bench/floors.h; the context names it): of
// the large product for arithmetic, of the large copy for memory. It is above 1 where tensors stay in a cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "headrace/bench/device_bench.h"
#include "headrace/bench/floors.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/kernels.h"

namespace headrace {
namespace {

// What main() opened and measured before the benchmarks run.
struct Target {
  DeviceGroup devices;
  Floors floors;
};
const Target* target = nullptr;

Device& device() { return target->devices[0]; }
bool on_host() { return device().info().host_memory; }

void count(benchmark::State& state, const char* unit, double work, double floor) {
  state.counters[unit] = benchmark::Counter(work / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["roofline"] = benchmark::Counter(work / floor, benchmark::Counter::kIsIterationInvariantRate);
}
void count_flops(benchmark::State& state, double flops, Precision precision) {
  count(state, "GFLOP/s", flops, target->floors.flops(precision));
}
void count_bytes(benchmark::State& state, double bytes) {
  count(state, "GB/s", bytes, target->floors.bytes_per_second);
}

enum class Pass { kForward, kBackwardData, kBackwardWeights };
constexpr const char* kPassNames[] = {"forward", "backward_data", "backward_weights"};

struct Conv {
  std::int64_t in, out, side, batch;
};

void conv(benchmark::State& state, const Conv& c, Pass pass, Precision precision) {
  DeviceBench bench(device());
  const ConvOptions options{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .precision = precision};
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({c.batch, c.side, c.side, c.in}, type);
  const TensorView y = bench.random({c.batch, c.side, c.side, c.out}, type);
  const TensorView weights = bench.random({c.out, 3, 3, c.in}), bias = bench.random({c.out});
  bench.time(state, [&] {
    Stream& stream = bench.stream();
    switch (pass) {
      case Pass::kForward:
        return bench.kernels().conv_forward(stream, x, weights, bias, y, options, Activation::kRelu);
      case Pass::kBackwardData: return bench.kernels().conv_backward_data(stream, y, weights, x, options);
      case Pass::kBackwardWeights:
        return bench.kernels().conv_backward_weights(stream, x, y, weights, bias, options);
    }
  });
  count_flops(state, 18.0 * static_cast<double>(c.batch * c.side * c.side * c.in * c.out), precision);
}

struct Dense {
  std::int64_t rows, inputs, outputs;
};

void dense(benchmark::State& state, const Dense& d, Pass pass, Precision precision) {
  DeviceBench bench(device());
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({d.rows, d.inputs}, type), y = bench.random({d.rows, d.outputs}, type);
  const TensorView weights = bench.random({d.outputs, d.inputs}), bias = bench.random({d.outputs});
  bench.time(state, [&] {
    Stream& stream = bench.stream();
    switch (pass) {
      case Pass::kForward:
        return bench.kernels().dense_forward(stream, x, weights, bias, y, Activation::kRelu, precision);
      case Pass::kBackwardData: return bench.kernels().dense_backward_data(stream, y, weights, x, precision);
      case Pass::kBackwardWeights:
        return bench.kernels().dense_backward_weights(stream, x, y, weights, bias, precision);
    }
  });
  count_flops(state, 2.0 * static_cast<double>(d.rows * d.inputs * d.outputs), precision);
}

constexpr std::int64_t kSide = 32, kChannels = 64;

std::int64_t images() { return on_host() ? 128 : 2000; }  // a GPU's cache must not hold them
Shape images_of(std::int64_t side) { return {images(), side, side, kChannels}; }
double bytes_of(DType type) {
  return static_cast<double>(size_of(type)) * static_cast<double>(images_of(kSide).elements());
}

void activation(benchmark::State& state, Activation which, Pass pass, DType type) {
  DeviceBench bench(device());
  const Shape batch = images_of(kSide);
  const TensorView x = bench.random(batch, type), y = bench.random(batch, type), dx = bench.empty(batch, type);
  bench.time(state, [&] {
    if (pass == Pass::kForward) return bench.kernels().activation_forward(bench.stream(), which, x, y);
    bench.kernels().activation_backward(bench.stream(), which, x, y, dx);
  });
  count_bytes(state, (pass == Pass::kForward ? 2 : 3) * bytes_of(type));
}

void max_pool(benchmark::State& state, Pass pass, DType type) {
  DeviceBench bench(device());
  const Shape half = images_of(kSide / 2);
  const TensorView x = bench.random(images_of(kSide), type), y = bench.random(half, type);
  const TensorView argmax = bench.empty(half, DType::kU8);
  bench.time(state, [&] {
    if (pass == Pass::kForward) return bench.kernels().max_pool_forward(bench.stream(), x, y, argmax, {});
    bench.kernels().max_pool_backward(bench.stream(), y, argmax, x, {});
  });
  count_bytes(state, bytes_of(type) * 1.25 + bytes_of(DType::kU8) * 0.25);
}

void batch_norm(benchmark::State& state, Pass pass, DType type) {
  DeviceBench bench(device());
  const Shape batch = images_of(kSide);
  const TensorView x = bench.random(batch, type), y = bench.random(batch, type), dx = bench.empty(batch, type);
  const auto vector = [&] { return bench.random({kChannels}); };
  const Kernels::BatchNorm norm{.gamma = vector(),
                                .beta = vector(),
                                .running_mean = vector(),
                                .running_var = vector(),
                                .saved_mean = vector(),
                                .saved_inv_std = vector()};
  const TensorView dgamma = vector(), dbeta = vector();
  const StepScalars* scalars = bench.constant(StepScalars{.rows = images()});
  bench.time(state, [&] {
    if (pass == Pass::kForward) return bench.kernels().batch_norm_train(bench.stream(), x, norm, scalars, y);
    bench.kernels().batch_norm_backward(bench.stream(), x, y, norm, scalars, dgamma, dbeta, dx);
  });
  count_bytes(state, bytes_of(type) * (pass == Pass::kForward ? 3 : 5));
}

enum class Fusion { kApart, kFused };

// Batch normalisation and the activation behind it: two calls and what lies between them in memory, or one call.
void norm_and_activation(benchmark::State& state, Activation which, Pass pass, Fusion fusion, DType type) {
  DeviceBench bench(device());
  const Shape batch = images_of(kSide);
  const TensorView x = bench.random(batch, type), y = bench.random(batch, type), dx = bench.empty(batch, type);
  const TensorView normalized = bench.random(batch, type);
  const auto vector = [&] { return bench.random({kChannels}); };
  Kernels::BatchNorm norm{.gamma = vector(),
                          .beta = vector(),
                          .running_mean = vector(),
                          .running_var = vector(),
                          .saved_mean = vector(),
                          .saved_inv_std = vector()};
  if (fusion == Fusion::kFused) norm.activation = which;
  const TensorView dgamma = vector(), dbeta = vector();
  const StepScalars* scalars = bench.constant(StepScalars{.rows = images()});
  bench.time(state, [&] {
    Stream& stream = bench.stream();
    Kernels& kernels = bench.kernels();
    if (pass == Pass::kForward) {
      kernels.batch_norm_train(stream, x, norm, scalars, y);
      if (fusion == Fusion::kApart) kernels.activation_forward(stream, which, y, y);
      return;
    }
    if (fusion == Fusion::kApart) kernels.activation_backward(stream, which, normalized, y, dx);
    kernels.batch_norm_backward(stream, x, fusion == Fusion::kApart ? dx : y, norm, scalars, dgamma, dbeta, dx);
  });
  count_bytes(state, bytes_of(type) * (pass == Pass::kForward ? 3 : 5));
}

void dropout(benchmark::State& state) {
  DeviceBench bench(device());
  const TensorView x = bench.random(images_of(kSide));
  const StepScalars* scalars = bench.constant(StepScalars{.rows = images()});
  bench.time(state, [&] { bench.kernels().dropout(bench.stream(), x, 0.0F, 1, 2, scalars, x); });
  count_bytes(state, 2 * bytes_of(DType::kF32));
}

void scale_shift(benchmark::State& state) {
  DeviceBench bench(device());
  const Shape images{512, 32, 32, 3};
  const TensorView x = bench.empty(images, DType::kU8), y = bench.empty(images);
  const TensorView scale = bench.random({3}), shift = bench.random({3});
  bench.time(state, [&] { bench.kernels().scale_shift(bench.stream(), x, scale, shift, y); });
  count_bytes(state, 5.0 * static_cast<double>(images.elements()));
}

enum class Update { kAdam, kSgd };

void optimizer(benchmark::State& state, Update update) {
  DeviceBench bench(device());
  const Shape arena{state.range(0)};
  const TensorView p = bench.random(arena), g = bench.random(arena), m = bench.empty(arena),
                   v = bench.empty(arena);
  const StepScalars* scalars = bench.constant(StepScalars{.learning_rates = {1e-6F}});
  const UpdateRange<AdamOptions> by_adam[]{{.end = arena.elements()}};
  const UpdateRange<SgdOptions> by_sgd[]{{.end = arena.elements(), .options = {.momentum = 0.9F}}};
  bench.time(state, [&] {
    if (update == Update::kAdam) return bench.kernels().adam(bench.stream(), p, g, m, v, by_adam, scalars);
    bench.kernels().sgd(bench.stream(), p, g, m, by_sgd, scalars);
  });
  count_bytes(state, (update == Update::kAdam ? 28.0 : 20.0) * static_cast<double>(state.range(0)));
}

// 784-256-256-10 with Adam: forward, loss, backward, update as one captured launch.
void mlp_step(benchmark::State& state) {
  DeviceBench bench(device());
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
  const StepScalars* scalars = bench.constant(StepScalars{
      .rows = rows, .inverse_global_rows = 1.0F / static_cast<float>(rows), .learning_rates = {1e-6F}});
  MetricSums* sums = bench.constant(MetricSums{});
  const UpdateRange<AdamOptions> whole[]{{.end = kParameters}};
  bench.time(state, [&] {
    Kernels& k = bench.kernels();
    Stream& stream = bench.stream();
    for (std::size_t i = 0; i < 3; ++i) {
      k.dense_forward(stream, x[i], weights[i], biases[i], x[i + 1], i < 2 ? Activation::kRelu : Activation::kNone,
                      Precision::kF32);
    }
    k.softmax_cross_entropy(stream, x[3], labels, 0, scalars, dx[3], sums);
    for (std::size_t i = 3; i-- > 0;) {
      k.dense_backward_weights(stream, x[i], dx[i + 1], dweights[i], dbiases[i], Precision::kF32);
      if (i == 0) break;
      k.dense_backward_data(stream, dx[i + 1], weights[i], dx[i], Precision::kF32);
      k.activation_backward(stream, Activation::kRelu, x[i], dx[i], dx[i]);
    }
    k.adam(stream, parameters, gradients, first, second, whole, scalars);
  });
  state.counters["steps/s"] = benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
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

void add_products() {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const char* type = precision == Precision::kF32 ? "f32" : "bf16";
    for (const Pass pass : {Pass::kForward, Pass::kBackwardData, Pass::kBackwardWeights}) {
      const char* name = kPassNames[static_cast<int>(pass)];
      for (const Conv& c : on_host() ? kHostConvs : kDeviceConvs) {
        benchmark::RegisterBenchmark(
            fmt::format("conv3x3/{}/{}/{}->{}@{}x{}", type, name, c.in, c.out, c.side, c.batch).c_str(),
            [=](benchmark::State& state) { conv(state, c, pass, precision); })
            ->UseRealTime();
      }
      for (const Dense& d : on_host() ? kHostDense : kDeviceDense) {
        benchmark::RegisterBenchmark(
            fmt::format("dense/{}/{}/{}x{}x{}", type, name, d.rows, d.inputs, d.outputs).c_str(),
            [=](benchmark::State& state) { dense(state, d, pass, precision); })
            ->UseRealTime();
      }
    }
  }
}

// What memory bounds, on activations of this type.
void add_memory_bound(DType type) {
  for (const Pass pass : {Pass::kForward, Pass::kBackwardData}) {
    const auto add = [&](const char* what, auto function) {
      const std::string name = fmt::format("{}{}/{}", what, type == DType::kF32 ? "" : "_bf16",
                                           pass == Pass::kForward ? "forward" : "backward");
      benchmark::RegisterBenchmark(name.c_str(), function)->UseRealTime();
    };
    add("relu", [=](benchmark::State& state) { activation(state, Activation::kRelu, pass, type); });
    add("gelu", [=](benchmark::State& state) { activation(state, Activation::kGelu, pass, type); });
    add("silu", [=](benchmark::State& state) { activation(state, Activation::kSilu, pass, type); });
    add("max_pool", [=](benchmark::State& state) { max_pool(state, pass, type); });
    add("batch_norm", [=](benchmark::State& state) { batch_norm(state, pass, type); });
    for (const auto& [name, fusion] : {std::pair{"apart", Fusion::kApart}, {"fused", Fusion::kFused}}) {
      for (const auto& [activation, which] :
           {std::pair{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"silu", Activation::kSilu}}) {
        add(fmt::format("batch_norm_{}_{}", activation, name).c_str(),
            [=](benchmark::State& state) { norm_and_activation(state, which, pass, fusion, type); });
      }
    }
  }
}

void add_others() {
  add_memory_bound(DType::kF32);
  const DType half = device().kernels()->activation_type(Precision::kBF16);
  if (half != DType::kF32) add_memory_bound(half);
  benchmark::RegisterBenchmark("dropout", dropout)->UseRealTime();
  benchmark::RegisterBenchmark("scale_shift_u8", scale_shift)->UseRealTime();
  for (const auto& [name, update] : {std::pair{"adam", Update::kAdam}, {"sgd_momentum", Update::kSgd}}) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { optimizer(state, update); })
        ->Arg(269322)
        ->Arg(1 << 24)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark("mlp_step", mlp_step)->Arg(32)->Arg(512)->UseRealTime();
}

void run(const std::string& spec) {
  Target opened{.devices = open_devices(spec), .floors = {}};
  opened.floors = measure_floors(opened.devices[0]);
  target = &opened;
  benchmark::AddCustomContext("device", device().info().name + ", " + device().info().description);
  benchmark::AddCustomContext("floor_gb_per_s", fmt::format("{:.1f}", opened.floors.bytes_per_second / 1e9));
  benchmark::AddCustomContext("floor_f32_gflop_per_s", fmt::format("{:.1f}", opened.floors.f32_flops / 1e9));
  benchmark::AddCustomContext("floor_bf16_gflop_per_s", fmt::format("{:.1f}", opened.floors.bf16_flops / 1e9));
  add_products();
  add_others();
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  const std::string device = headrace::take_device_flag(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  try {
    headrace::run(device);
  } catch (const headrace::Error& error) {
    fmt::print(stderr, "kernels_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
