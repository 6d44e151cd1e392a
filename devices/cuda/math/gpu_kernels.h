// A GPU's table of mathematics except for matrix products: the launches and scratch memory of each call.
// One definition serves a GPU (cuda_kernels.cpp) and its twin on the host (tests/support/twin_kernels.h). Private
// to the CUDA backend.
#pragma once

#include <utility>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/direct_convolution.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Returns whether a library's product adds the bias; otherwise our own kernel does, with the activation, after the
// bare product. The libraries' activations are none of Kernels: their ReLU may turn NaN into 0, their GELU is the
// tanh approximation.
constexpr bool products_add_bias(Activation activation) noexcept {
  return activation == Activation::kNone || activation == Activation::kRelu;
}

// Launches has
//   submit(stream, kernel, work)                  work(launcher), in stream order
//   submit(stream, kernel, scratch_bytes, work)   work(launcher, scratch)
// with a launcher as in cuda_launcher.cuh; `kernel` appears in errors. Members are defined in *_calls.h and
// instantiated for the GPU in the .cu of their kernels. Activations may be f32 or bf16.
template <typename Launches>
class GpuKernels : public Kernels {
 public:
  // All supported GPUs have bf16 tensor cores.
  bool prefers_bf16() const noexcept override { return true; }
  DType activation_type(Precision precision) const noexcept override {
    return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  }
  DType product_weights_type(Precision precision) const noexcept override { return activation_type(precision); }

  bool recomputes_activation(DType activations, const Shape& weights, const ConvOptions& options) const override {
    return computes_directly(activations, weights, options);
  }

 protected:
  template <typename... Arguments>
  explicit GpuKernels(Arguments&&... arguments) : launches_(std::forward<Arguments>(arguments)...) {}

  HEADRACE_KERNELS(HEADRACE_KERNEL_BODY)

  // Compute products without an activation, and gradients without the bias's; a bias may be undefined.
  virtual void product(Stream& stream, const kernel::DenseForward& of) = 0;
  virtual void product(Stream& stream, const kernel::DenseBackwardData& of) = 0;
  virtual void product(Stream& stream, const kernel::DenseBackwardWeights& of) = 0;
  virtual void product(Stream& stream, const kernel::BatchedMatmul& of) = 0;
  virtual void product(Stream& stream, const kernel::ConvForward& of) = 0;
  virtual void product(Stream& stream, const kernel::ConvBackwardData& of) = 0;
  virtual void product(Stream& stream, const kernel::ConvBackwardWeights& of) = 0;
  virtual void product(Stream& stream, const kernel::Muon& of) = 0;

  Launches launches_;

 private:
  // Submits a product; its bias and activation with it, as far as products_add_bias(), else after it.
  template <typename Forward>
  void product_and_activation(Stream& stream, const Forward& of) {
    Forward bare = of;
    bare.activation = Activation::kNone;
    const bool added = products_add_bias(of.activation);
    if (!added) bare.bias = {};
    product(stream, bare);
    if (of.activation == Activation::kNone) return;
    bias_activation(stream, name_of(of), of.y, added ? TensorView{} : of.bias, of.activation);
  }
  template <typename Gradients>
  static Gradients without_bias(Gradients of) {
    of.dbias = {};
    return of;
  }
  // Computes forward. REQUIRES: computes_directly().
  void convolve_directly(Stream& stream, const kernel::ConvForward& of);
  void bias_activation(Stream& stream, const char* kernel, const TensorView& y, const TensorView& bias,
                       Activation activation);
  void bias_gradient(Stream& stream, const char* kernel, const TensorView& dy,
                     const TensorView& dbias);  // none if dbias is undefined
};

}  // namespace headrace::cuda
