// What the CUDA backend launches, on the fake runtime: the mathematics are the CPU's, each call a kernel.
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/math/bias_calls.h"
#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/element.h"
#include "headrace/devices/cuda/math/elementwise_calls.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_calls.h"
#include "headrace/devices/cuda/math/norm_calls.h"
#include "headrace/devices/cuda/math/optimizer_calls.h"
#include "headrace/devices/cuda/math/pooling_calls.h"
#include "headrace/devices/cuda/math/product_calls.h"
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
  CUDA_CHECK(launch(dynamic_cast<CudaStream&>(stream).handle(), std::move(kernel), name),
             stream.device().info().name);
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
                     const TensorView& y, Activation activation, Precision precision) override {
    run<&Kernels::dense_forward>("dense_forward", stream, x, weights, bias, y, activation, precision);
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
  void conv_product(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override {
    run<&Kernels::conv_forward>("conv_forward", stream, x, weights, bias, y, options, activation);
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

// Over both GPUs: counts its sums, which add nothing for the reason given below.
class FakeNccl final : public Collective {
 public:
  explicit FakeNccl(int size) : size_(size) {}

  int size() const noexcept override { return size_; }
  Collective& in_order() override { return in_order_; }
  void all_reduce_sum(int, const TensorView&, Stream&) override { test::fake_cuda::note("sum"); }
  void broadcast(int, int, const TensorView&, Stream&) override {}
  void abort(const std::string&) noexcept override {}

 private:
  class InOrder final : public Collective {
   public:
    explicit InOrder(FakeNccl& group) : group_(group) {}

    int size() const noexcept override { return group_.size(); }
    void all_reduce_sum(int, const TensorView&, Stream&) override { test::fake_cuda::note("sum in order"); }
    void broadcast(int, int, const TensorView&, Stream&) override {}
    void abort(const std::string&) noexcept override {}

   private:
    FakeNccl& group_;
  };

  int size_;
  InOrder in_order_{*this};
};

class FakeMath final : public CudaMath {
 public:
  std::unique_ptr<Kernels> create_kernels(const DeviceInfo&) const override {
    return std::make_unique<FakeCudaKernels>();
  }
  std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices) const override {
    return std::make_unique<FakeNccl>(devices.size());
  }
  std::vector<Finding> diagnose() const override { return {}; }
};

}  // namespace

template <typename Out>
cudaError_t launch_input_kernel(const cuda::ImageWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  return launch(stream, [=] { test::run_on_host(work, layout); });
}
template cudaError_t launch_input_kernel(const cuda::ImageWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::ImageWork<BFloat16>&, ImageLayout, cudaStream_t);

template <typename Out>
cudaError_t launch_input_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  return launch(stream, [=] { test::run_on_host(work, layout); });
}
template cudaError_t launch_input_kernel(const cuda::WindowWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::WindowWork<BFloat16>&, ImageLayout, cudaStream_t);

// Replicas of one host thread cannot wait for one another where streams run at once: here they only launch.
namespace cuda {
cudaError_t meet(const Rendezvous&, const RendezvousCall&, cudaStream_t stream) {
  return launch(stream, [] {});
}
cudaError_t carry_out(const Rendezvous&, const RendezvousCall&, cudaStream_t stream) {
  return launch(stream, [] {});
}
cudaError_t part(const Rendezvous&, cudaStream_t stream) {
  return launch(stream, [] {});
}
cudaError_t load_rendezvous_kernels() { return cudaSuccess; }
}  // namespace cuda

}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::CudaMath* headrace_cuda_math(int abi_version) {
  static const headrace::FakeMath math;
  return abi_version == headrace::kBackendAbiVersion ? &math : nullptr;
}
