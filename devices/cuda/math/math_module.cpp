// The exports of libheadrace_cuda_math.so.
#include <cublasLt.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstdio>

#include "headrace/devices/base/error.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/math/cuda_kernels.h"
#include "headrace/devices/cuda/math/nccl_collective.h"
#include "headrace/devices/cuda/math/plan_store.h"

namespace headrace {
namespace {

// Each library encodes its version as one number, with different factors.
std::string release(std::size_t version, std::size_t major, std::size_t minor) {
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

Finding library(const char* name, std::string version) {
  return {.name = name, .found = true, .version = std::move(version), .hint = {}};
}

Finding nccl() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess || version <= 0) {
    return {.name = "NCCL", .found = false, .version = {}, .hint = "the library does not tell its version"};
  }
  return library("NCCL", release(static_cast<std::size_t>(version), 10000, 100));
}

void warn(const std::string& remark) { fmt::print(stderr, "headrace: warning: {}\n", remark); }

class LinkedMath final : public CudaMath {
 public:
  std::unique_ptr<Kernels> create_kernels(const DeviceInfo& device) const override {
    return std::make_unique<CudaKernels>(device.ordinal, device.name, plans_);
  }
  std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices,
                                                     std::shared_ptr<Workers> workers) const override {
    return std::make_unique<NcclCollective>(devices, std::move(workers));
  }
  std::vector<Finding> diagnose() const override {
    return {library("cuDNN", release(cudnnGetVersion(), 10000, 100)),
            library("cuBLASLt", release(cublasLtGetVersion(), 10000, 100)), nccl(), plans_.describe()};
  }

 private:
  // One store for all replicas of the process.
  mutable cuda::PlanStore plans_{cuda::plan_folder(), warn};
};

}  // namespace
}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::CudaMath* headrace_cuda_math(int abi_version) {
  static const headrace::LinkedMath math;
  return abi_version == headrace::kBackendAbiVersion ? &math : nullptr;
}
