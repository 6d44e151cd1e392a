// The kernels of a GPU: our own and those of NVIDIA's libraries, and the module's entry point.
#include <cublasLt.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstdio>
#include <map>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/math/cublaslt_products.h"
#include "headrace/devices/cuda/math/cuda_launches.h"
#include "headrace/devices/cuda/math/cuda_muon.h"
#include "headrace/devices/cuda/math/cudnn_convolution.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/nccl_collective.h"
#include "headrace/devices/cuda/math/own_kernels.h"
#include "headrace/devices/cuda/math/plan_store.h"
#include "headrace/devices/cuda/math/product_calls.h"
#include "headrace/devices/cuda/math/stream_scratch.h"

namespace headrace {

// Products come from cuDNN and cuBLASLt, everything else is our own. Work captured on one stream must not be
// launched on another while the first has work: scratch memory belongs to the stream.
class CudaKernels final : public cuda::GpuKernels<cuda::CudaLaunches> {
 public:
  // REQUIRES: device and store outlive it.
  CudaKernels(Device& device, cuda::PlanStore& store);

  void tune_plans() override { convolution_.tune(); }
  std::map<std::string, std::string> chosen_plans() const override { return convolution_.chosen_plans(); }

 private:
  void product(Stream& stream, const kernel::DenseForward& of) override { dense(stream, of); }
  void product(Stream& stream, const kernel::DenseBackwardData& of) override { dense(stream, of); }
  void product(Stream& stream, const kernel::DenseBackwardWeights& of) override { dense(stream, of); }
  void product(Stream& stream, const kernel::BatchedMatmul& of) override { dense(stream, of); }
  void product(Stream& stream, const kernel::ConvForward& of) override;
  void product(Stream& stream, const kernel::ConvBackwardData& of) override;
  void product(Stream& stream, const kernel::ConvBackwardWeights& of) override;
  void product(Stream& stream, const kernel::Muon& of) override;

  template <typename Product>
  void dense(Stream& stream, const Product& of) {
    if (const auto on = launches_.enter(stream)) dense_.product(*on, of);
  }

  CudnnConvolution convolution_;
  CublasLtDense dense_;
  CudaMuon muon_;
  std::string device_;
  cuda::StreamScratch scratch_;  // of convolutions of our own
};

CudaKernels::CudaKernels(Device& device, cuda::PlanStore& store)
    : GpuKernels(device),
      convolution_(device, store),
      dense_(device),
      muon_(device),
      device_(device.info().name),
      scratch_(device) {}

void CudaKernels::product(Stream& stream, const kernel::ConvForward& of) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (!of.bias.defined() && cuda::fits_narrow_kernels(of.x, of.weights, of.y, of.options)) {
    CUDA_CHECK(cuda::narrow_forward(of.x, of.weights, of.y, *on), device_);
  } else {
    convolution_.product(*on, of);
  }
}

void CudaKernels::product(Stream& stream, const kernel::ConvBackwardData& of) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (cuda::fits_narrow_kernels(of.dx, of.weights, of.dy, of.options)) {
    CUDA_CHECK(cuda::narrow_input_gradient(of.dy, of.weights, of.dx, *on), device_);
  } else {
    convolution_.product(*on, of);
  }
}

void CudaKernels::product(Stream& stream, const kernel::ConvBackwardWeights& of) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (cuda::fits_narrow_weight_gradient(of.x, of.dy, of.dweights, of.options)) {
    void* scratch = scratch_.reserve(*on, cuda::narrow_scratch_bytes());
    CUDA_CHECK(cuda::narrow_weight_gradient(of.x, of.dy, of.dweights, scratch, *on), device_);
  } else {
    convolution_.product(*on, of);
  }
}

void CudaKernels::product(Stream& stream, const kernel::Muon& of) {
  if (const auto on = launches_.enter(stream)) muon_.update(*on, of);
}

template class cuda::GpuKernels<cuda::CudaLaunches>;

// The exports of libheadrace_cuda_math.so.

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
  std::unique_ptr<Kernels> create_kernels(Device& device) const override {
    return std::make_unique<CudaKernels>(device, plans_);
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
