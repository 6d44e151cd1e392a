#include "headrace/tools/measure/measured_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
std::optional<std::int64_t> take_batch(Loader& loader, std::chrono::microseconds consumer) {
  std::int64_t examples = 0;
  for (int replica = 0; replica < loader.devices().size(); ++replica) {
    const std::optional<Batch> batch = loader.next(replica);
    if (!batch) return std::nullopt;
    batch->ready().wait();
    examples += batch->examples();
    if (consumer.count() > 0 && replica == 0) std::this_thread::sleep_for(consumer);
  }
  return examples;
}

std::int64_t take_first_batch(Loader& loader, std::chrono::microseconds consumer) {
  const std::optional<std::int64_t> examples = take_batch(loader, consumer);
  if (!examples) throw Error(ErrorCode::kNotFound, "the pipeline has no batches", "is the data set empty?");
  return *examples;
}

WarmUp warm_up(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line) {
  const Stopwatch watch;
  const std::uint64_t wanted = static_cast<std::uint64_t>(options.warm_passes) * loader.steps_per_epoch();
  std::uint64_t batches = 0;
  const auto cold = [&] { return !loader.tuned() || batches < wanted; };
  while (cold() && watch.seconds() < options.max_warm_up_seconds) {
    line.show(fmt::format("warming up: {:.1f} s, the maximum is {:.1f} s", watch.seconds(),
                          options.max_warm_up_seconds));
    if (!take_batch(loader, options.consumer)) break;
    ++batches;
  }
  return {.finished = !cold(), .batch_seconds = batches > 0 ? watch.seconds() / static_cast<double>(batches) : 0};
}

LoaderStats run_measured(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line) {
  const LoaderStats before = loader.stats();
  const Stopwatch clock;
  while (clock.seconds() < options.seconds && take_batch(loader, options.consumer)) {
    line.show(fmt::format("measuring: {:.1f} s of {:.1f} s", clock.seconds(), options.seconds));
  }
  const LoaderStats interval = loader.stats().since(before);
  interval.require_good();
  if (interval.examples == 0) {
    throw ConfigError("the stream ended before it was measured", "give more --epochs or a smaller --global-batch");
  }
  return interval;
}

void wait_until_idle(const Loader& loader) {
  static constexpr std::chrono::milliseconds kQuiet{25};  // longer than a thread works on one record
  const auto work_done = [&loader] {
    std::uint64_t items = 0;
    for (const StageStats& stage : loader.stats().stages) items += stage.items;
    return items;
  };
  for (std::uint64_t before = work_done();;) {
    std::this_thread::sleep_for(kQuiet);
    const std::uint64_t now = work_done();
    if (now == before) return;
    before = now;
  }
}

double median(std::vector<double> values) { return quantile(values, 0.5); }

void ComparedRates::run(int threads, double seconds, double engine) {
  rates.push_back(baseline(threads, seconds));
  ratios.push_back(engine / rates.back());
}

void ComparedRates::add_to(nlohmann::ordered_json& line) const {
  const std::string prefix = key == "baseline" ? "" : key + "_";
  line["samples"][key] = rates;
  line[prefix + "ratios"] = ratios;
  line[key] = name;
  line[key + "_images_per_second"] = median(rates);
  line[prefix + "ratio"] = median(ratios);
  line[prefix + "ratio_min"] = *std::ranges::min_element(ratios);
  line[prefix + "ratio_max"] = *std::ranges::max_element(ratios);
}

void ComparedRates::print(double engine, std::FILE* people) const {
  tools::print(people, "{}: {:.0f} images/s; the engine's {:.0f} are {:.2f} of it ({:.2f} to {:.2f}, {})\n", name,
               median(rates), engine, median(ratios), *std::ranges::min_element(ratios),
               *std::ranges::max_element(ratios), count_of(ratios.size(), "pair"));
}

std::vector<ComparedRates> compared_with(const std::string& pipeline, const PipelineOptions& options) {
  std::vector<ComparedRates> all;
  all.push_back(
      {.key = "baseline", .name = baseline_name(pipeline), .baseline = make_baseline(pipeline, options)});
  if (Baseline bound = make_memory_bound(pipeline)) {
    all.push_back({.key = "memory", .name = "memory alone", .baseline = std::move(bound)});
  }
  return all;
}

FirstPass measure_first_pass(const PipelineCommandOptions& options, const Dataset& dataset, DeviceGroup& devices) {
  LoaderOptions settings = options.loader();
  settings.epochs = 1;
  FirstPass pass;
  const Stopwatch clock;
  Loader loader(dataset, devices, settings);
  const std::int64_t first = take_first_batch(loader);
  const double started = clock.seconds();
  std::int64_t images = 0;
  while (true) {
    const Stopwatch wait;
    const std::optional<std::int64_t> examples = take_batch(loader);
    if (!examples) break;
    pass.waits_us.push_back(wait.seconds() * 1e6);
    images += *examples;
  }
  pass.seconds = clock.seconds();
  pass.first_batch_ms = started * 1e3;
  pass.images_per_second = images > 0 ? static_cast<double>(images) / (pass.seconds - started)
                                      : static_cast<double>(first) / pass.seconds;
  pass.threads = loader.threads();
  return pass;
}

std::vector<FirstPass> first_passes_in_turn(const PipelineCommandOptions& options, DeviceGroup& devices,
                                            std::vector<ComparedRates>& others) {
  const FirstPass warm = measure_first_pass(options, options.open(), devices);
  for (ComparedRates& other : others) other.baseline(warm.threads, warm.seconds);
  std::vector<FirstPass> passes;
  for (int pair = 0; pair < kPairs; ++pair) {
    passes.push_back(measure_first_pass(options, options.open(), devices));
    const FirstPass& pass = passes.back();
    for (ComparedRates& other : others) other.run(pass.threads, pass.seconds, pass.images_per_second);
  }
  return passes;
}

std::uint64_t resident_memory_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  if (!(statm >> total >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t peak_resident_memory_bytes() {
  // Not getrusage(): what the process was before exec() counts there.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

namespace {

using DriverCall = int (*)();  // cuProfilerStart() and cuProfilerStop(): 0 is success

DriverCall driver_call(const char* name) {
  const SharedModule driver = open_shared_module("libcuda.so.1", name);
  if (driver.entry == nullptr) {
    throw ConfigError("--profile-epoch needs NVIDIA's driver: " + driver.missing,
                      "run it on a machine with a GPU, under ncu or nsys");
  }
  return reinterpret_cast<DriverCall>(driver.entry);
}

// Nothing is trained differently where the driver refuses: the profiler's own report is empty then.
void call(DriverCall function, const char* name) {
  if (const int status = function(); status != 0) {
    print(stderr, "headrace: warning: {} failed with CUDA error {}; is the fit's device a GPU?\n", name, status);
  }
}

}  // namespace

Callback profiled_epoch(int epoch) {
  const DriverCall start = driver_call("cuProfilerStart"), stop = driver_call("cuProfilerStop");
  return {.on_train_begin =
              [=](FitControl&) {
                if (epoch == 1) call(start, "cuProfilerStart");
              },
          .on_epoch_end =
              [=](const EpochReport& report, FitControl&) {
                if (report.epoch + 1 == epoch) call(stop, "cuProfilerStop");
                if (report.epoch + 2 == epoch) call(start, "cuProfilerStart");
              }};
}

}  // namespace headrace::tools
