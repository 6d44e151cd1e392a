// Loading a record on four CPU devices, and what the page cache alone allows: as many threads that each read the
// whole file. Both count the bytes that the devices get.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/registry.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr int kLoadingDevices = 4;

// About 67 MB of variables.
Node wide_net(Graph& g) { return g.dense(g.dense(g.input("image", {2048}), 4096), 2048); }

class RecordBench {
 public:
  RecordBench()
      : devices_(open_devices("cpu:4")),
        strategy_(devices_, {.announce = false}),
        model_(strategy_.build(wide_net)) {
    model_.compile({.optimizer = sgd(), .loss = mean_squared_error(), .metrics = {}});
    save_model(model_, path_);
  }
  ~RecordBench() { std::filesystem::remove(path_); }
  RecordBench(const RecordBench&) = delete;
  RecordBench& operator=(const RecordBench&) = delete;

  Model& model() { return model_; }
  const std::filesystem::path& path() const { return path_; }
  double delivered_bytes() const {
    return static_cast<double>(kLoadingDevices * std::filesystem::file_size(path_));
  }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / "headrace_record_bench.safetensors";
  DeviceGroup devices_;
  Strategy strategy_;
  Model model_;
};

RecordBench& record() {
  static RecordBench record;
  return record;
}

void report_rate(benchmark::State& state) {
  state.counters["bytes_per_second"] =
      benchmark::Counter(record().delivered_bytes() * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate, benchmark::Counter::kIs1024);
}

void load_record(benchmark::State& state) {
  Model& model = record().model();
  for (auto _ : state) load_weights(model, record().path());
  report_rate(state);
}
BENCHMARK(load_record)->UseRealTime()->Repetitions(5)->ReportAggregatesOnly(true);

void page_cache_copy(benchmark::State& state) {
  const File file = File::open(record().path());
  std::vector<std::vector<std::byte>> places(kLoadingDevices, std::vector<std::byte>(file.size()));
  for (auto _ : state) {
    std::vector<std::thread> threads;
    for (std::vector<std::byte>& place : places) threads.emplace_back([&] { file.read_exact(0, place); });
    for (std::thread& thread : threads) thread.join();
  }
  report_rate(state);
}
BENCHMARK(page_cache_copy)->UseRealTime()->Repetitions(5)->ReportAggregatesOnly(true);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
