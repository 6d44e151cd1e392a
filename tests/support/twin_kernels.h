// A GPU's kernels on the host: Headrace's own are the very work of the CUDA kernels (host_launcher.h), products
// are the CPU's with f32 temporaries for bf16 activations, rounded once. In bf16 precision it wants activations in
// bf16, as a GPU and a CPU do.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/tests/support/devices_of.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/twin_input_kernels.h"

namespace headrace::test {

// Streams and memory are those of a CPU device. One thread.
class TwinKernels : public Kernels {
 public:
  explicit TwinKernels(Device& cpu) : cpu_(cpu) {}

  bool prefers_bf16() const noexcept override { return true; }
  DType activation_type(Precision precision) const noexcept override {
    return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  }
  DType product_weights_type(Precision precision) const noexcept override { return activation_type(precision); }
  void convert(Stream& stream, const TensorView& from, const TensorView& to) override;

  void dense_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Activation activation, Precision precision) override;
  void dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override;
  void dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, const TensorView& dbias, Precision precision) override;
  void conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override;
  void conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override;
  void conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const TensorView& dbias, const ConvOptions& options) override;

  void activation_forward(Stream& stream, Activation activation, const TensorView& x,
                          const TensorView& y) override;
  void activation_backward(Stream& stream, Activation activation, const TensorView& x, const TensorView& dy,
                           const TensorView& dx) override;
  void add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) override;
  void accumulate(Stream& stream, const TensorView& x, const TensorView& into) override;
  void scale_shift(Stream& stream, const TensorView& x, const TensorView& scale, const TensorView& shift,
                   const TensorView& y) override;
  void dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
               const StepScalars* scalars, const TensorView& y) override;
  void shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) override;
  void max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y, const TensorView& argmax,
                        const PoolOptions& options) override;
  void max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                         const PoolOptions& options) override;
  void global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) override;
  void global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) override;
  void batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm, const StepScalars* scalars,
                        const TensorView& y) override;
  void batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm, const TensorView& y) override;
  void batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const BatchNorm& norm,
                           const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                           const TensorView& dx) override;
  void max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                 const TensorView& pooled, const BatchNorm& norm, const StepScalars* scalars,
                                 const TensorView& y) override;
  void max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled, const TensorView& dy,
                                    const BatchNorm& norm, const StepScalars* scalars, const TensorView& dgamma,
                                    const TensorView& dbeta, const MaxPool& pool, const TensorView& dx) override;
  void softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                             float label_smoothing, const StepScalars* scalars, const TensorView& dlogits,
                             MetricSums* sums) override;
  void softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) override;
  void adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
            const TensorView& first_moment, const TensorView& second_moment,
            std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) override;
  void sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
           std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) override;
  void muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
            const StepScalars* scalars) override;

 private:
  Kernels& products() { return *cpu_.kernels(); }
  // The view itself, or for bf16 an f32 temporary of its shape. One stream's calls reuse a slot's temporary.
  TensorView in_f32(Stream& stream, int slot, const TensorView& view);
  TensorView filled(Stream& stream, int slot, const TensorView& view);
  void add_bias_gradient(Stream& stream, const TensorView& dy, const TensorView& dbias);

  Device& cpu_;
  std::map<std::pair<const Stream*, int>, Buffer> temporaries_;
  std::deque<Buffer> outgrown_;  // captured work may refer to them
};

// A CPU replica that computes and converts as a GPU would.
class TwinDevice : public DiscreteDevice {
 public:
  explicit TwinDevice(std::unique_ptr<Device> inner) : DiscreteDevice(std::move(inner)), kernels_(this->inner()) {}

  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CpuStream>(*this, 1); }
  Kernels* kernels() noexcept override { return &kernels_; }
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

 private:
  TwinKernels kernels_;
  TwinInputKernels input_kernels_;
};

inline DeviceGroup twin_devices(int replicas) { return devices_of<TwinDevice>(replicas); }

}  // namespace headrace::test
