// The kernels of a GPU: our own and those of NVIDIA's libraries, and the module's entry point.
#include <cublasLt.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstdio>
#include <map>
#include <span>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/common/kernel_checks.h"
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
  // For GPU `ordinal`, called `device_name` in errors. The store must outlive it.
  CudaKernels(int ordinal, const std::string& device_name, cuda::PlanStore& store);

  void tune_plans() override { convolution_.tune(); }
  std::map<std::string, std::string> chosen_plans() const override { return convolution_.chosen_plans(); }

  void muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
            const StepScalars* scalars) override;

 private:
  void dense_product(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Precision precision) override;
  void dense_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override;
  void dense_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, Precision precision) override;
  void batched_product(Stream& stream, const Matrices& a, const Matrices& b, float alpha, const Matrices& result,
                       Precision precision) override;
  void conv_product(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options) override;
  void conv_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override;
  void conv_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const ConvOptions& options) override;

  CudnnConvolution convolution_;
  CublasLtDense dense_;
  CudaMuon muon_;
  std::string device_;
  cuda::StreamScratch scratch_;  // of convolutions of our own
};

CudaKernels::CudaKernels(int ordinal, const std::string& device_name, cuda::PlanStore& store)
    : GpuKernels(ordinal, device_name),
      convolution_(ordinal, device_name, store),
      dense_(ordinal, device_name),
      muon_(ordinal, device_name),
      device_(device_name),
      scratch_(device_name) {}

void CudaKernels::dense_product(Stream& stream, const TensorView& x, const TensorView& weights,
                                const TensorView& bias, const TensorView& y, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.forward(*on, x, weights, bias, y, precision);
}

void CudaKernels::dense_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                      const TensorView& dx, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.backward_data(*on, dy, weights, dx, precision);
}

void CudaKernels::dense_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                         const TensorView& dweights, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.backward_weights(*on, x, dy, dweights, precision);
}

void CudaKernels::batched_product(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                                  const Matrices& result, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.batched(*on, a, b, alpha, result, precision);
}

void CudaKernels::conv_product(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, const ConvOptions& options) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (!bias.defined() && cuda::fits_narrow_kernels(x, weights, y, options)) {
    CUDA_CHECK(cuda::narrow_forward(x, weights, y, *on), device_);
  } else {
    convolution_.forward(*on, x, weights, bias, y, options);
  }
}

void CudaKernels::conv_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, const ConvOptions& options) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (cuda::fits_narrow_kernels(dx, weights, dy, options)) {
    CUDA_CHECK(cuda::narrow_input_gradient(dy, weights, dx, *on), device_);
  } else {
    convolution_.backward_data(*on, dy, weights, dx, options);
  }
}

void CudaKernels::conv_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const ConvOptions& options) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (cuda::fits_narrow_weight_gradient(x, dy, dweights, options)) {
    void* scratch = scratch_.reserve(*on, cuda::narrow_scratch_bytes());
    CUDA_CHECK(cuda::narrow_weight_gradient(x, dy, dweights, scratch, *on), device_);
  } else {
    convolution_.backward_weights(*on, x, dy, dweights, options);
  }
}

void CudaKernels::muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
                       const StepScalars* scalars) {
  check::muon(matrices, options);
  if (const auto on = launches_.enter(stream)) muon_.update(*on, matrices, options, scalars);
}

namespace cuda {
template void GpuKernels<CudaLaunches>::dense_forward(Stream&, const TensorView&, const TensorView&,
                                                      const TensorView&, const TensorView&, Activation, Precision);
template void GpuKernels<CudaLaunches>::dense_backward_data(Stream&, const TensorView&, const TensorView&,
                                                            const TensorView&, Precision);
template void GpuKernels<CudaLaunches>::dense_backward_weights(Stream&, const TensorView&, const TensorView&,
                                                               const TensorView&, const TensorView&, Precision);
template void GpuKernels<CudaLaunches>::batched_matmul(Stream&, const Matrices&, const Matrices&, float,
                                                       const Matrices&, Precision);
template void GpuKernels<CudaLaunches>::conv_forward(Stream&, const TensorView&, const TensorView&,
                                                     const TensorView&, const TensorView&, const ConvOptions&,
                                                     Activation);
template void GpuKernels<CudaLaunches>::conv_backward_data(Stream&, const TensorView&, const TensorView&,
                                                           const TensorView&, const ConvOptions&);
template void GpuKernels<CudaLaunches>::conv_backward_weights(Stream&, const TensorView&, const TensorView&,
                                                              const TensorView&, const TensorView&,
                                                              const ConvOptions&);
template void GpuKernels<CudaLaunches>::add_bias(Stream&, const TensorView&, const TensorView&, Activation);
}  // namespace cuda

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
