#include "headrace/devices/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>
#include <tbb/version.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "headrace/devices/base/environment.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/cpu/cpu_collective.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/math/cpu_kernels.h"
#include "headrace/devices/cpu/openmp_waiting.h"

namespace headrace {
namespace {

std::string vector_unit() {
  if (has_amx_bf16()) return "AVX-512 and AMX";
  if (has_fast_bf16()) return "AVX-512 and bf16";
  if (has_avx512()) return "AVX-512";
  return has_avx2() ? "AVX2" : "no AVX2";
}

// Shared by all CPU devices of the process: replicas share one memory.
std::atomic<std::uint64_t> allocated_bytes{0};

// The part of the machine's memory reserved for everything else: the process itself, the system, other processes.
constexpr std::uint64_t kShareOfOthers = 8;

// The OpenMP threads of the device's other streams sleep while they wait: spinning, they would take the processors
// from the lanes, each of which works on its own.
class CpuLane final : public CpuStream {
 public:
  CpuLane(Device& device, std::shared_ptr<OpenMpOversubscription> sleeping)
      : CpuStream(device, 1), sleeping_(std::move(sleeping)) {}

 private:
  std::shared_ptr<OpenMpOversubscription> sleeping_;
};

}  // namespace

DeviceInfo describe_cpu(std::string name) {
  return {.name = std::move(name),
          .kind = DeviceKind::kCpu,
          .ordinal = 0,
          .description = fmt::format("{}, {} cores, {}", cpu_model(), cpu_cores(), vector_unit()),
          .memory_bytes = machine_memory_bytes(),
          .host_memory = true};
}

CpuDevice::CpuDevice(std::string name, int threads, std::shared_ptr<OpenMpWaiting> waiting)
    : info_(describe_cpu(std::move(name))),
      threads_(threads),
      waiting_(std::move(waiting)),
      kernels_(create_cpu_kernels(info_.name, threads)),
      lane_kernels_(create_cpu_kernels(info_.name, 1)) {}

CpuDevice::~CpuDevice() = default;

Kernels* CpuDevice::kernels() noexcept {
  if (waiting_ != nullptr) waiting_->begin();
  return kernels_.get();
}

MemoryUse CpuDevice::memory_use() const noexcept {
  return {.device_bytes = device_bytes_.load(), .pinned_bytes = pinned_bytes_.load()};
}

std::unique_ptr<Stream> CpuDevice::create_stream() { return std::make_unique<CpuStream>(*this, threads_); }

std::unique_ptr<Stream> CpuDevice::create_lane() {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<OpenMpOversubscription> sleeping = sleeping_.lock();
  if (sleeping == nullptr && threads_ > 1) sleeping_ = sleeping = std::make_shared<OpenMpOversubscription>();
  return std::make_unique<CpuLane>(*this, std::move(sleeping));
}

std::unique_ptr<Event> CpuDevice::create_event() { return std::make_unique<CpuEvent>(CpuTiming::kNo); }

std::unique_ptr<Event> CpuDevice::create_timed_event() { return std::make_unique<CpuEvent>(CpuTiming::kYes); }

void CpuDevice::release(void* data, std::size_t bytes, MemoryPlace place) noexcept {
  FreeMemory()(static_cast<std::byte*>(data));
  counter(place) -= bytes;
  allocated_bytes -= bytes;
}

Buffer CpuDevice::allocate(std::size_t bytes, MemoryPlace place) {
  if (bytes == 0) return {};
  // Linux would promise more memory than exists, and kill the process when it is used.
  const std::uint64_t limit = info_.memory_bytes - info_.memory_bytes / kShareOfOthers, taken = allocated_bytes;
  LargeMemory memory = bytes <= limit && taken <= limit - bytes ? allocate_large(bytes) : nullptr;
  if (memory == nullptr) {
    throw DeviceError(ErrorCode::kOutOfMemory,
                      fmt::format("cannot allocate {} bytes; {} are in use, the machine has {}", bytes, taken,
                                  info_.memory_bytes),
                      info_.name, "a smaller batch or fewer batches in flight need less");
  }
  counter(place) += bytes;
  allocated_bytes += bytes;
  return {*this, memory.release(), bytes, place};
}

std::atomic<std::uint64_t>& CpuDevice::counter(MemoryPlace place) noexcept {
  return place == MemoryPlace::kPinned ? pinned_bytes_ : device_bytes_;
}

namespace {

int threads_per_stream(int local_replicas) {
  const int asked = environment_number("HEADRACE_CPU_THREADS", 0, 1, 1024, "threads");
  return asked > 0 ? asked : std::max(1, cpu_cores() / local_replicas);
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
