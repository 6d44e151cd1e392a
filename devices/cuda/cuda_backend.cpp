#include "headrace/devices/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "headrace/devices/backend_module.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_device.h"

namespace headrace {
namespace {

std::string release(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

struct DeviceCount {
  int count = 0;
  cudaError_t status = cudaSuccess;
};

// Without a driver the call fails and leaves its argument alone.
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

Finding unused_library(const char* name) {
  return {.name = name,
          .found = false,
          .version = {},
          .hint = "not used: this module feeds batches and does not train"};
}

}  // namespace

std::vector<DeviceInfo> CudaBackend::list() const {
  std::vector<DeviceInfo> all;
  const int count = count_devices().count;
  for (int ordinal = 0; ordinal < count; ++ordinal) all.push_back(describe(ordinal));
  return all;
}

std::unique_ptr<Device> CudaBackend::open(int ordinal, const std::string& name, int /*replicas*/) const {
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
                        .found = true,
                        .version = info.description + ", " + gibibytes(info.memory_bytes),
                        .hint = {}});
  }
  findings.push_back(unused_library("cuDNN"));
  findings.push_back(unused_library("NCCL"));
  return findings;
}

}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::Backend* headrace_backend(int abi_version) {
  static const headrace::CudaBackend backend;
  return abi_version == headrace::kBackendAbiVersion ? &backend : nullptr;
}
