#include "headrace/tools/measure/first_pass.h"

#include <unistd.h>
#include <fstream>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/measure/measured_run.h"

namespace headrace::tools {

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

}  // namespace headrace::tools
