// NCCL on whatever devices a test has, also where the backend sums otherwise: on one GPU.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/registry.h"

namespace headrace::test {

// Of the CUDA backend that the registry has; null where there is none.
inline const CudaMath* cuda_mathematics() {
  std::filesystem::path file;
  for (const Backend* backend : backends()) {
    if (backend->name() == "cuda") file = folder_of_code(backend) / kCudaMathFile;
  }
  if (const char* named = std::getenv("HEADRACE_CUDA_MATH_MODULE"); named != nullptr) file = named;
  const SharedModule module = open_shared_module(file, kCudaMathEntryName);
  return module.entry != nullptr ? reinterpret_cast<CudaMathEntry>(module.entry)(kBackendAbiVersion) : nullptr;
}

inline std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices,
                                                          std::shared_ptr<Workers> workers = nullptr) {
  const CudaMath* const mathematics = cuda_mathematics();
  if (mathematics == nullptr) throw ConfigError("the CUDA backend's mathematics is not there");
  return mathematics->create_nccl_collective(devices, std::move(workers));
}

}  // namespace headrace::test
