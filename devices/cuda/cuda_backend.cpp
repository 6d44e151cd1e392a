// NVIDIA's stack, as a module.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <utility>

#include "headrace/devices/backend.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cuda/cuda_backend.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/gpu_support.h"

namespace headrace {
namespace {

class CudaBackend final : public Backend {
 public:
  std::string name() const override { return "cuda"; }
  std::vector<DeviceInfo> list() const override;
  std::unique_ptr<Device> open(int ordinal, const std::string& name, int local_replicas) const override;
  // Replicas that share one GPU sum there; one replica per GPU sums through NCCL.
  std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const override;
  // NCCL connects GPUs of several processes, one replica per GPU.
  bool connects_processes(const DeviceGroup& devices) const override;
  std::unique_ptr<Collective> create_world_collective(DeviceGroup& devices,
                                                      std::shared_ptr<Workers> workers) const override;
  std::vector<Finding> diagnose() const override;
};

std::string release(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

struct DeviceCount {
  int count = 0;
  cudaError_t status = cudaSuccess;
};

// A note on a GPU that is newer than the module's machine code.
constexpr const char* kFromPtx = ", kernels compiled from PTX at first use";

// Without a driver the call fails and leaves its argument unchanged.
DeviceCount count_devices() noexcept {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();  // no later call should find it
  return {.count = status == cudaSuccess ? count : 0, .status = status};
}

DeviceInfo describe(int ordinal) {
  DeviceInfo info{.name = fmt::format("cuda:{}", ordinal),
                  .kind = DeviceKind::kCuda,
                  .ordinal = ordinal,
                  .description = "unreadable",
                  .memory_bytes = 0,
                  .host_memory = false};
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return info;
  }
  info.description = fmt::format("{}, sm_{}{}", properties.name, properties.major, properties.minor);
  info.memory_bytes = properties.totalGlobalMem;
  const cuda::ComputeCapability capability{.major = properties.major, .minor = properties.minor};
  const cuda::BuiltArchitectures built = cuda::parse_architectures(HEADRACE_CUDA_BUILT_FOR);  // CMakeLists.txt
  const cuda::Support support = cuda::support_of(capability, built);
  if (support == cuda::Support::kNone) info.unusable = cuda::why_unsupported(capability, built);
  if (support == cuda::Support::kPtx) info.description += kFromPtx;
  return info;
}

Finding driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
    cudaGetLastError();
    return {.name = "CUDA driver",
            .found = false,
            .version = {},
            .hint = "install NVIDIA's driver, or pass the GPU through to this container"};
  }
  return {.name = "CUDA driver", .found = true, .version = "for CUDA " + release(version), .hint = {}};
}

Finding runtime() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return {.name = "CUDA runtime", .found = true, .version = release(version) + ", in the module", .hint = {}};
}

Finding no_gpu(const Finding& driver, cudaError_t status) {
  std::string hint = "needs the CUDA driver";
  if (driver.found) {
    hint = status == cudaSuccess || status == cudaErrorNoDevice ? "the driver lists none: see CUDA_VISIBLE_DEVICES"
                                                                : cudaGetErrorString(status);
  }
  return {.name = "GPU", .found = false, .version = {}, .hint = hint};
}

std::vector<Finding> mathematics() {
  const LoadedMath& loaded = cuda_math();
  if (loaded.math != nullptr) return loaded.math->diagnose();
  return {{.name = "CUDA mathematics", .found = false, .version = {}, .hint = loaded.missing}};
}

enum class Placement { kOneGpu, kDistinctGpus, kMixed };

std::set<int> ordinals_of(const DeviceGroup& devices) {
  std::set<int> ordinals;
  for (int replica = 0; replica < devices.size(); ++replica) ordinals.insert(devices[replica].info().ordinal);
  return ordinals;
}

Placement placement_of(const DeviceGroup& devices) {
  const std::set<int> ordinals = ordinals_of(devices);
  if (ordinals.size() == 1) return Placement::kOneGpu;
  return static_cast<int>(ordinals.size()) == devices.size() ? Placement::kDistinctGpus : Placement::kMixed;
}

// The driver reads it when it starts. Streams that share a hardware queue run in the order of their submission: a
// replica that waits for another would block it. 32 is the maximum.
void ask_for_queues() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0); }

}  // namespace

std::vector<DeviceInfo> CudaBackend::list() const {
  std::vector<DeviceInfo> all;
  const int count = count_devices().count;
  for (int ordinal = 0; ordinal < count; ++ordinal) all.push_back(describe(ordinal));
  return all;
}

std::unique_ptr<Device> CudaBackend::open(int ordinal, const std::string& name, int /*local_replicas*/) const {
  const DeviceCount devices = count_devices();
  if (ordinal < 0 || ordinal >= devices.count) {
    throw DeviceError(ErrorCode::kNotFound,
                      devices.status == cudaSuccess ? fmt::format("there are {} GPUs", devices.count)
                                                    : cudaGetErrorString(devices.status),
                      name, "`headrace doctor` lists what there is");
  }
  return std::make_unique<CudaDevice>(describe(ordinal), name);
}

std::vector<Finding> CudaBackend::diagnose() const {
  std::vector<Finding> findings{driver(), runtime()};
  const DeviceCount devices = count_devices();
  if (devices.count == 0) findings.push_back(no_gpu(findings.front(), devices.status));
  for (const DeviceInfo& info : list()) {
    findings.push_back({.name = "GPU " + info.name,
                        .found = info.unusable.empty(),
                        .version = info.description + ", " + gibibytes(info.memory_bytes),
                        .hint = info.unusable});
  }
  for (Finding& finding : mathematics()) findings.push_back(std::move(finding));
  return findings;
}

std::unique_ptr<Collective> CudaBackend::create_collective(DeviceGroup& devices) const {
  const Placement placement = placement_of(devices);
  if (placement == Placement::kOneGpu) return std::make_unique<SharedGpuCollective>(devices);
  if (placement == Placement::kMixed) {
    throw DeviceError(ErrorCode::kUnsupported, "cannot sum over " + devices.to_string(), devices[0].info().name,
                      "use one replica on each GPU, or all replicas on one");
  }
  return create_world_collective(devices, nullptr);
}

bool CudaBackend::connects_processes(const DeviceGroup& devices) const {
  return static_cast<int>(ordinals_of(devices).size()) == devices.size() && cuda_math().math != nullptr;
}

std::unique_ptr<Collective> CudaBackend::create_world_collective(DeviceGroup& devices,
                                                                 std::shared_ptr<Workers> workers) const {
  const LoadedMath& loaded = cuda_math();
  if (loaded.math == nullptr) {
    throw DeviceError(ErrorCode::kUnsupported, "no mathematics: " + loaded.missing, devices[0].info().name);
  }
  return loaded.math->create_nccl_collective(devices, std::move(workers));
}

}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::Backend* headrace_backend(int abi_version) {
  static const headrace::CudaBackend backend;
  headrace::ask_for_queues();
  return abi_version == headrace::kBackendAbiVersion ? &backend : nullptr;
}
