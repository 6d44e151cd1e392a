#include "headrace/devices/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>
#include <tbb/version.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_collective.h"
#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/openmp_waiting.h"

namespace headrace {
namespace {

int threads_per_stream(int local_replicas) {
  const char* variable = std::getenv("HEADRACE_CPU_THREADS");
  if (variable == nullptr || *variable == '\0') return std::max(1, cpu_cores() / local_replicas);
  const std::string_view text(variable);
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc{} || end != text.data() + text.size() || threads < 1 || threads > 1024) {
    throw ConfigError(fmt::format("HEADRACE_CPU_THREADS is '{}'", text), "it must be a number from 1 to 1024");
  }
  return threads;
}

Finding feature(const char* name, bool found, const char* use) {
  return {.name = name,
          .found = found,
          .version = {},
          .hint = found ? "" : fmt::format("this CPU or its operating system has none: {}", use)};
}

std::string dnnl_release() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace

std::vector<DeviceInfo> CpuBackend::list() const { return {describe_cpu("cpu:0")}; }

std::unique_ptr<Device> CpuBackend::open(int ordinal, const std::string& name, int local_replicas) const {
  if (ordinal != 0) {
    throw DeviceError(ErrorCode::kNotFound, fmt::format("there is no CPU {}", ordinal), name, "it is one device");
  }
  const int threads = threads_per_stream(local_replicas);
  return std::make_unique<CpuDevice>(name, threads, threads > 1 ? waiting() : nullptr);
}

std::shared_ptr<OpenMpWaiting> CpuBackend::waiting() const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<OpenMpWaiting> shared = waiting_.lock();
  if (shared == nullptr) waiting_ = shared = OpenMpWaiting::create();
  return shared;
}

std::unique_ptr<Collective> CpuBackend::create_collective(DeviceGroup& devices) const {
  return std::make_unique<CpuCollective>(devices);
}

std::vector<Finding> CpuBackend::diagnose() const {
  const DeviceInfo cpu = describe_cpu("cpu");
  return {
      {.name = "CPU", .found = true, .version = cpu.description, .hint = {}},
      {.name = "memory",
       .found = true,
       .version = fmt::format("{:.1f} GiB", static_cast<double>(cpu.memory_bytes) / (1 << 30)),
       .hint = {}},
      feature("AVX2", has_avx2(), "mathematics runs on slower, scalar paths"),
      feature("AVX-512", has_avx512(), "mathematics runs on AVX2"),
      feature("fast bf16", has_fast_bf16(), "no AMX, nor AMD's AVX512_BF16: bf16 is not faster than f32 here"),
      {.name = "oneDNN", .found = true, .version = dnnl_release(), .hint = {}},
      {.name = "oneTBB", .found = true, .version = TBB_runtime_version(), .hint = {}},
  };
}

}  // namespace headrace
