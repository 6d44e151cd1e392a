// The input engine alone. Ratios are taken from pairs measured in turn (A B A B ...) within one benchmark: the
// counters ratio_median, ratio_min and ratio_max; images_per_second is the engine's. --device=SPEC or
// $HEADRACE_DEVICES says where the batches go, by default one CPU replica; a batch counts once it is there.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "headrace/bench/device_bench.h"
#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/pipelines/baseline.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace {
namespace {

constexpr std::int64_t kImages = 50'000;
constexpr std::int64_t kBatch = 512;
constexpr std::int64_t kSide = 32, kChannels = 3, kPad = 4;
constexpr std::int64_t kBytes = kSide * kSide * kChannels;
constexpr float kMean[] = {0.4914F, 0.4822F, 0.4465F};
constexpr float kStd[] = {0.2470F, 0.2435F, 0.2616F};
constexpr int kPairs = 7;

std::string device_spec;  // set by main()

DeviceGroup target() { return open_devices(device_spec, DeviceNeed::kMemory); }

std::vector<std::byte> random_pixels() {
  std::vector<std::byte> pixels(static_cast<std::size_t>(kImages * kBytes));
  std::mt19937_64 engine(1);
  for (std::size_t i = 0; i + 8 <= pixels.size(); i += 8) {
    const std::uint64_t word = engine();
    std::memcpy(pixels.data() + i, &word, sizeof word);
  }
  return pixels;
}

Dataset cifar_dataset(ImageLayout layout) {
  const SourcePtr source =
      in_memory("noise", kImages,
                {Array{.field = {.name = "image", .dtype = DType::kU8, .shape = {kSide, kSide, kChannels}},
                       .bytes = random_pixels()}});
  return Dataset::from(source)
      .shuffle({.seed = 1})
      .map(pad_crop(kSide, kPad) | flip() | normalize({kMean, kMean + 3}, {kStd, kStd + 3}) | to_layout(layout))
      .batch({.global_batch = kBatch});
}

// The loop over the same images, in an order of its own, into a ring of three batches.
class Loop {
 public:
  Loop() : loop_("cifar-train", samples(), shuffled_order()), ring_(allocate_large(3 * kBatchBytes)) {
    if (ring_ == nullptr) throw std::bad_alloc();
  }

  double epoch_seconds() {
    const Stopwatch watch;
    std::size_t batch = 0;
    for (std::size_t first = 0; first < loop_.samples(); first += kBatch, ++batch) {
      const std::size_t count = std::min<std::size_t>(kBatch, loop_.samples() - first);
      loop_.make(first, count, random_, ring_.get() + batch % 3 * kBatchBytes, nullptr);
    }
    return watch.seconds();
  }

 private:
  static constexpr std::size_t kBatchBytes = kBatch * kBytes * sizeof(float);

  static tools::DecodedSamples samples() {
    const std::vector<std::byte> pixels = random_pixels();
    tools::DecodedSamples samples;
    samples.count = kImages;
    samples.sample_bytes = kBytes;
    samples.bytes = allocate_large(pixels.size());
    if (samples.bytes == nullptr) throw std::bad_alloc();
    std::ranges::copy(pixels, samples.bytes.get());
    return samples;
  }
  static std::vector<std::uint32_t> shuffled_order() {
    std::vector<std::uint32_t> order(kImages);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    return order;
  }

  tools::FusedLoop loop_;
  LargeMemory ring_;
  std::minstd_rand random_{1};
};

// Seconds of one epoch after the first batch was there.
double loader_epoch(Loader& loader, std::uint64_t steps) {
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const auto batch = loader.next();
    batch->ready().wait();
    benchmark::DoNotOptimize(batch->tensors()[0].data);
  }
  return watch.seconds();
}

void report_ratios(benchmark::State& state, std::vector<double> ratios, double images_per_second) {
  std::sort(ratios.begin(), ratios.end());
  state.counters["ratio_median"] = ratios[ratios.size() / 2];
  state.counters["ratio_min"] = ratios.front();
  state.counters["ratio_max"] = ratios.back();
  state.counters["images_per_second"] = images_per_second;
}

// One compute thread of the engine against the loop on one thread.
void cifar_train_against_fused_loop(benchmark::State& state) {
  Loop fused;
  const Dataset dataset = cifar_dataset(ImageLayout::kChannelsFirst);
  for (auto _ : state) {
    DeviceGroup devices = target();
    Loader loader(dataset, devices, {.epochs = kPairs + 1, .threads = 1});
    std::vector<double> ratios;
    double seconds = 0;
    for (int pair = -1; pair < kPairs; ++pair) {
      // The batches that were made while the loop had the processor are not counted.
      const double engine_share =
          static_cast<double>(loader.steps_per_epoch() - 3) / static_cast<double>(loader.steps_per_epoch());
      loader_epoch(loader, 3);
      const double engine = loader_epoch(loader, loader.steps_per_epoch() - 3) / engine_share;
      const double loop = fused.epoch_seconds();
      if (pair < 0) continue;
      ratios.push_back(loop / engine);
      seconds += engine;
    }
    report_ratios(state, ratios, kPairs * kImages / seconds);
  }
}
BENCHMARK(cifar_train_against_fused_loop)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void cifar_train(benchmark::State& state) {
  const auto layout = state.range(0) == 0 ? ImageLayout::kChannelsFirst : ImageLayout::kChannelsLast;
  DeviceGroup devices = target();
  Loader loader(cifar_dataset(layout), devices,
                {.epochs = 1'000'000, .threads = static_cast<int>(state.range(1))});
  loader_epoch(loader, 10);
  for (auto _ : state) loader_epoch(loader, 1);
  state.counters["images_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kBatch), benchmark::Counter::kIsRate);
}
BENCHMARK(cifar_train)->ArgsProduct({{0, 1}, {1, 2}})->ArgNames({"hwc", "threads"})->UseRealTime();

// The engine's own cost: 512 integers a batch.
void trivial(benchmark::State& state) {
  DeviceGroup devices = target();
  Loader loader(tools::make_pipeline("trivial", {}), devices, {.epochs = 1'000'000, .threads = 1});
  loader_epoch(loader, 10);
  for (auto _ : state) loader_epoch(loader, 1);
  state.counters["ns_an_element"] = benchmark::Counter(static_cast<double>(state.iterations() * kBatch) * 1e-9,
                                                       benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(trivial)->UseRealTime();

// What the counters of a block of rows cost: the clock is read once a step of one row, and when the block begins
// and ends.
void counted_block(benchmark::State& state) {
  constexpr std::size_t kSteps = 6;
  std::array<std::atomic<std::uint64_t>, 2 * kSteps> counters{};  // items and nanoseconds, which one thread writes
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  };
  for (auto _ : state) {
    std::uint64_t stamp = now_ns();
    for (std::size_t step = 0; step < kSteps; ++step) {
      const std::uint64_t end = now_ns();
      add(counters[2 * step], 1);
      add(counters[2 * step + 1], end - stamp);
      stamp = end;
    }
    benchmark::DoNotOptimize(now_ns());
  }
}
BENCHMARK(counted_block);

// Needs photographs: HEADRACE_DATA names the folder with imagenet-sample-700.tar.
void jpeg(benchmark::State& state, const char* pipeline) {
  const char* folder = std::getenv("HEADRACE_DATA");
  if (folder == nullptr)
    return state.SkipWithError("set HEADRACE_DATA to the folder with imagenet-sample-700.tar");
  DeviceGroup devices = target();
  const tools::PipelineOptions options{.data = std::filesystem::path(folder) / "imagenet-sample-700.tar",
                                       .split = Split::kTrain,
                                       .global_batch = 64};
  Loader loader(tools::make_pipeline(pipeline, options), devices,
                {.epochs = 1'000'000, .threads = static_cast<int>(state.range(0))});
  loader_epoch(loader, 3);
  const LoaderStats before = loader.stats();
  for (auto _ : state) loader_epoch(loader, 1);
  const LoaderStats after = loader.stats();
  const double decode = static_cast<double>(after.decode_ns - before.decode_ns);
  const double operate = static_cast<double>(after.operate_ns - before.operate_ns);
  state.counters["images_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations() * 64), benchmark::Counter::kIsRate);
  state.counters["decode_share"] = decode / (decode + operate);
}
BENCHMARK_CAPTURE(jpeg, train, "jpeg-train")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(jpeg, train_float, "jpeg-train-float")->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(jpeg, eval, "jpeg-eval")->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void run() {
  const DeviceGroup devices = target();
  benchmark::AddCustomContext("device", devices[0].info().name + ", " + devices[0].info().description);
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::device_spec = headrace::take_device_flag(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  try {
    headrace::run();
  } catch (const headrace::Error& error) {
    std::fprintf(stderr, "input_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
