// Photographs whose windows a device decodes: what is left to a core of the host, and what the device gets. The
// device does nothing, so that the rates are the host's; `decodes` 0 is the host that decodes itself. windows
// counts what bench/decode_on_paper multiplies with the instructions of the kernels.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/bench/device_bench.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace {
namespace {

constexpr std::int64_t kBatch = 64;
constexpr std::uint64_t kEpoch = 10;  // batches of the 700 photographs

using Look = std::function<void(const JpegDecoding&)>;

class IdleInputKernels final : public InputKernels {
 public:
  explicit IdleInputKernels(Look look) : look_(std::move(look)) {}

  void convert_pixels(Stream& /*stream*/, const PixelConversion& /*conversion*/) override {}
  bool decodes_jpegs() const noexcept override { return true; }
  void decode_jpegs(Stream& stream, const JpegDecoding& decoding) override {
    if (!look_) return;
    stream.synchronize();
    look_(decoding);
  }

 private:
  Look look_;
};

// A CPU replica that pretends to have memory of its own.
class IdleDevice final : public Device {
 public:
  IdleDevice(std::unique_ptr<Device> inner, Look look)
      : inner_(std::move(inner)), info_(inner_->info()), kernels_(std::move(look)) {
    info_.host_memory = false;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  MemoryUse memory_use() const noexcept override { return inner_->memory_use(); }
  std::unique_ptr<Stream> create_stream() override { return inner_->create_stream(); }
  std::unique_ptr<Event> create_event() override { return inner_->create_event(); }
  std::unique_ptr<Event> create_timed_event() override { return inner_->create_timed_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  Kernels* kernels() noexcept override { return nullptr; }
  InputKernels* input_kernels() noexcept override { return &kernels_; }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_->release(data, bytes, place);
  }

 private:
  std::unique_ptr<Device> inner_;
  DeviceInfo info_;
  IdleInputKernels kernels_;
};

DeviceGroup idle_device(Look look = {}) {
  std::vector<std::unique_ptr<Device>> made;
  made.push_back(std::make_unique<IdleDevice>(backends().front()->open(0, "idle:0", 1), std::move(look)));
  return DeviceGroup(std::move(made));
}

// Skips the benchmark if there are no photographs.
std::optional<Dataset> photographs(benchmark::State& state) {
  const char* folder = std::getenv("HEADRACE_DATA");
  if (folder == nullptr) {
    state.SkipWithError("set HEADRACE_DATA to the folder with imagenet-sample-700.tar");
    return std::nullopt;
  }
  return tools::make_pipeline("jpeg-train-float",
                              {.data = std::filesystem::path(folder) / "imagenet-sample-700.tar",
                               .split = Split::kTrain,
                               .global_batch = kBatch});
}

void take(Loader& loader, std::uint64_t batches) {
  for (std::uint64_t i = 0; i < batches; ++i) loader.next()->ready().wait();
}

LoaderOptions options_of(std::uint64_t epochs, bool decodes) {
  return {.epochs = epochs,
          .threads = 1,
          .resident = Residency::kNever,
          .decode = decodes ? ConvertAt::kDevice : ConvertAt::kHost};
}

void count(benchmark::State& state, double images, double decoded) {
  state.counters["images_per_second"] = benchmark::Counter(images, benchmark::Counter::kIsRate);
  state.counters["device_share"] = decoded / images;
}

void later_passes(benchmark::State& state) {
  const auto data = photographs(state);
  if (!data) return;
  DeviceGroup devices = idle_device();
  Loader loader(*data, devices, options_of(1'000'000, state.range(0) != 0));
  take(loader, 2 * kEpoch + 2);  // all indexes are made
  const std::uint64_t before = loader.stats().device_decoded;
  for (auto _ : state) take(loader, kEpoch);
  count(state, static_cast<double>(state.iterations() * kBatch) * kEpoch,
        static_cast<double>(loader.stats().device_decoded - before));
}
BENCHMARK(later_passes)->Arg(0)->Arg(1)->ArgName("decodes")->UseRealTime()->Unit(benchmark::kMillisecond);

void first_pass(benchmark::State& state) {
  const auto data = photographs(state);
  if (!data) return;
  DeviceGroup devices = idle_device();
  std::uint64_t decoded = 0;
  for (auto _ : state) {
    Loader loader(*data, devices, options_of(2, state.range(0) != 0));  // of several: indexes are kept
    take(loader, kEpoch);
    decoded += loader.stats().device_decoded;
  }
  count(state, static_cast<double>(state.iterations() * kBatch) * kEpoch, static_cast<double>(decoded));
}
BENCHMARK(first_pass)->Arg(0)->Arg(1)->ArgName("decodes")->UseRealTime()->Unit(benchmark::kMillisecond);

// Sums over windows.
struct Counts {
  double windows = 0, bytes = 0, blocks = 0, columns = 0, pixels = 0, results = 0, taps_down = 0, taps_across = 0;
  double slowest_bits = 0;  // of the longest interval of each warp of 32

  void add(const JpegDecoding& decoding) {
    const auto* pixels_of = decoding.pixels.as<const std::byte>();
    const std::int64_t row_bytes = decoding.pixels.shape.without_front().elements();
    for (std::size_t n = 0; n < decoding.rows.size(); ++n) {
      const JpegWindow& window = decoding.rows[n];
      if (window.coded == 0) continue;
      add(window, decoding.pixels.shape[1]);
      add_intervals(window, pixels_of + static_cast<std::int64_t>(n) * row_bytes);
    }
  }

 private:
  void add(const JpegWindow& window, std::int64_t height) {
    ++windows;
    bytes += window.end - window.tables;
    blocks += window.blocks_before(window.components);
    columns += window.horizontal.used;
    pixels += static_cast<double>(window.horizontal.used) * window.vertical.used;
    results += static_cast<double>(height);
    taps_down += window.vertical.taps;
    taps_across += window.horizontal.taps;
  }
  void add_intervals(const JpegWindow& window, const std::byte* row) {
    const auto* starts = reinterpret_cast<const JpegInterval*>(row + window.starts);
    const std::span intervals(starts, static_cast<std::size_t>(window.rows * window.intervals));
    for (std::size_t first = 0; first < intervals.size(); first += 32) {
      std::uint32_t longest = 0;
      for (std::size_t i = first; i < std::min(first + 32, intervals.size()); ++i) {
        const auto end = i + 1 < intervals.size() ? intervals[i + 1].bit
                                                  : static_cast<std::uint32_t>(window.end - window.bits) * 8;
        longest = std::max(longest, end - intervals[i].bit);
      }
      slowest_bits += longest;
    }
  }
};

void windows(benchmark::State& state) {
  const auto data = photographs(state);
  if (!data) return;
  Counts counts;
  DeviceGroup devices = idle_device([&](const JpegDecoding& decoding) { counts.add(decoding); });
  for (auto _ : state) {
    Loader loader(*data, devices, options_of(1, true));
    take(loader, kEpoch);
  }
  const auto mean = [&](const char* name, double sum) { state.counters[name] = sum / counts.windows; };
  mean("bytes", counts.bytes);
  mean("blocks", counts.blocks);
  mean("slowest_bits", counts.slowest_bits);
  mean("columns", counts.columns);
  mean("pixels", counts.pixels);
  mean("results", counts.results);
  mean("taps_down", counts.taps_down);
  mean("taps_across", counts.taps_across);
}
BENCHMARK(windows)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
