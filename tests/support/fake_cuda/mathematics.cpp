// What the CUDA backend launches, on the fake runtime: the mathematics are the CPU's, each call a kernel.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/depthwise_calls.h"
#include "headrace/devices/cuda/math/direct_convolution_calls.h"
#include "headrace/devices/cuda/math/elementwise_calls.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_calls.h"
#include "headrace/devices/cuda/math/nccl_collective.h"
#include "headrace/devices/cuda/math/norm_calls.h"
#include "headrace/devices/cuda/math/optimizer_calls.h"
#include "headrace/devices/cuda/math/pooling_calls.h"
#include "headrace/devices/cuda/math/product_calls.h"
#include "headrace/devices/cuda/math/sequence_calls.h"
#include "headrace/devices/cuda/rendezvous.h"
#include "headrace/devices/kernels.h"
#include "headrace/tests/support/fake_cuda/runtime.h"
#include "headrace/tests/support/host_launcher.h"

namespace headrace {
namespace {

using test::fake_cuda::launch;

// What a kernel keeps of an argument: what a span shows is the caller's.
template <typename T>
T kept(const T& argument) {
  return argument;
}
template <typename T>
std::vector<T> kept(std::span<const T> argument) {
  return {argument.begin(), argument.end()};
}

void submit_kernel(Stream& stream, std::function<void()> kernel, const char* name) {
  const DeviceInfo& info = stream.device().info();
  CUDA_CHECK(cudaSetDevice(info.ordinal), info.name);
  CUDA_CHECK(launch(dynamic_cast<CudaStream&>(stream).handle(), std::move(kernel), "kernel", name), info.name);
}

// Each call is one kernel.
class FakeLaunches {
 public:
  template <typename Work>
  void submit(Stream& stream, const char* kernel, const Work& work) {
    submit_kernel(
        stream, [work] { test::run_on_host(work); }, kernel);
  }
  template <typename Work>
  void submit(Stream& stream, const char* kernel, std::size_t scratch_bytes, const Work& work) {
    submit_kernel(
        stream, [work, scratch_bytes] { test::run_on_host(work, scratch_bytes); }, kernel);
  }
};

// The CUDA backend's calls. Products are the CPU's, each a kernel.
class FakeCudaKernels final : public cuda::GpuKernels<FakeLaunches> {
 public:
  FakeCudaKernels() : cpu_("cpu:0"), stream_(cpu_.create_stream()) {}

  void muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
            const StepScalars* scalars) override {
    run<&Kernels::muon>("muon", stream, matrices, options, scalars);
  }

 private:
  void dense_product(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Precision precision) override {
    run<&Kernels::dense_forward>("dense_forward", stream, x, weights, bias, y, Activation::kNone, precision);
  }
  void dense_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override {
    run<&Kernels::dense_backward_data>("dense_backward_data", stream, dy, weights, dx, precision);
  }
  void dense_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, Precision precision) override {
    run<&Kernels::dense_backward_weights>("dense_backward_weights", stream, x, dy, dweights, TensorView{},
                                          precision);
  }
  void batched_product(Stream& stream, const Matrices& a, const Matrices& b, float alpha, const Matrices& result,
                       Precision precision) override {
    run<&Kernels::batched_matmul>("batched_matmul", stream, a, b, alpha, result, precision);
  }
  void conv_product(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options) override {
    run<&Kernels::conv_forward>("conv_forward", stream, x, weights, bias, y, options, Activation::kNone);
  }
  void conv_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override {
    run<&Kernels::conv_backward_data>("conv_backward_data", stream, dy, weights, dx, options);
  }
  void conv_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const ConvOptions& options) override {
    run<&Kernels::conv_backward_weights>("conv_backward_weights", stream, x, dy, dweights, TensorView{}, options);
  }

  template <auto kMethod, typename... Arguments>
  void run(const char* name, Stream& stream, const Arguments&... arguments) {
    const auto run = [this, all = std::make_tuple(kept(arguments)...)] {
      std::apply([this](const auto&... each) { (cpu_.kernels()->*kMethod)(*stream_, each...); }, all);
      stream_->synchronize();
    };
    submit_kernel(stream, run, name);
  }

  CpuDevice cpu_;
  std::unique_ptr<Stream> stream_;
};

class FakeMath final : public CudaMath {
 public:
  std::unique_ptr<Kernels> create_kernels(const DeviceInfo&) const override {
    return std::make_unique<FakeCudaKernels>();
  }
  std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices,
                                                     std::shared_ptr<Workers> workers) const override {
    return std::make_unique<NcclCollective>(devices, std::move(workers));
  }
  std::vector<Finding> diagnose() const override { return {}; }
};

// Which kernels were loaded, by device.
std::array<std::atomic<bool>, 8> images_loaded, windows_loaded;

std::size_t current_device() { return static_cast<std::size_t>(test::fake_cuda::current_device()); }

// One that is not loaded yet would be loaded here, which may wait for the GPU: an error.
template <typename Work>
cudaError_t launch_loaded(bool loaded, const Work& work, ImageLayout layout, cudaStream_t stream) {
  if (!loaded) return cudaErrorLaunchTimeout;
  return launch(stream, [=] { test::run_on_host(work, layout); });
}

}  // namespace

cudaError_t load_image_kernels() {
  test::fake_cuda::note("load image kernels");
  images_loaded[current_device()] = true;
  return cudaSuccess;
}
cudaError_t load_window_kernels() {
  test::fake_cuda::note("load window kernels");
  windows_loaded[current_device()] = true;
  return cudaSuccess;
}

template <typename Out>
cudaError_t launch_input_kernel(const cuda::ImageWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  return launch_loaded(images_loaded[current_device()], work, layout, stream);
}
template cudaError_t launch_input_kernel(const cuda::ImageWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::ImageWork<BFloat16>&, ImageLayout, cudaStream_t);

template <typename Out>
cudaError_t launch_input_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  return launch_loaded(windows_loaded[current_device()], work, layout, stream);
}
template cudaError_t launch_input_kernel(const cuda::WindowWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::WindowWork<BFloat16>&, ImageLayout, cudaStream_t);

// Replicas of one host thread cannot wait for one another where streams run at once: here they only launch.
namespace cuda {
cudaError_t meet(const Rendezvous&, const RendezvousCall&, cudaStream_t stream) {
  return launch(
      stream, [] {}, "meet");
}
cudaError_t carry_out(const Rendezvous&, const RendezvousCall&, cudaStream_t stream) {
  return launch(stream, [] {});
}
cudaError_t part(const Rendezvous&, cudaStream_t stream) {
  return launch(stream, [] {});
}
cudaError_t load_rendezvous_kernels() {
  test::fake_cuda::note("load rendezvous kernels");
  return cudaSuccess;
}
}  // namespace cuda

}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::CudaMath* headrace_cuda_math(int abi_version) {
  static const headrace::FakeMath math;
  return abi_version == headrace::kBackendAbiVersion ? &math : nullptr;
}
