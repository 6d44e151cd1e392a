// A GPU's table of mathematics. Private to the CUDA backend.
#pragma once

#include <map>
#include <span>
#include <string>

#include "headrace/devices/cuda/math/cublaslt_dense.h"
#include "headrace/devices/cuda/math/cuda_launches.h"
#include "headrace/devices/cuda/math/cuda_muon.h"
#include "headrace/devices/cuda/math/cudnn_convolution.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
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

}  // namespace headrace
