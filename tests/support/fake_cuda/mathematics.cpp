// What the CUDA backend launches, on the fake runtime: the mathematics are the CPU's, each call a kernel.
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/backend_module.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/math/element.h"
#include "headrace/devices/cuda/rendezvous.h"
#include "headrace/devices/cuda/window_kernel.h"
#include "headrace/devices/kernels.h"
#include "headrace/tests/support/fake_cuda/runtime.h"

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

// Arguments are in the order of Kernels.
class FakeCudaKernels final : public Kernels {
 public:
  FakeCudaKernels() : cpu_("cpu:0"), stream_(cpu_.create_stream()) {}

  bool prefers_bf16() const noexcept override { return true; }
  void convert(Stream& stream, const TensorView& a, const TensorView& b) override {
    run<&Kernels::convert>(stream, a, b);
  }
  void dense_forward(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                     const TensorView& d, Activation e, Precision f) override {
    run<&Kernels::dense_forward>(stream, a, b, c, d, e, f);
  }
  void dense_backward_data(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                           Precision d) override {
    run<&Kernels::dense_backward_data>(stream, a, b, c, d);
  }
  void dense_backward_weights(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                              const TensorView& d, Precision e) override {
    run<&Kernels::dense_backward_weights>(stream, a, b, c, d, e);
  }
  void conv_forward(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                    const TensorView& d, const ConvOptions& e, Activation f) override {
    run<&Kernels::conv_forward>(stream, a, b, c, d, e, f);
  }
  void conv_backward_data(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                          const ConvOptions& d) override {
    run<&Kernels::conv_backward_data>(stream, a, b, c, d);
  }
  void conv_backward_weights(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                             const TensorView& d, const ConvOptions& e) override {
    run<&Kernels::conv_backward_weights>(stream, a, b, c, d, e);
  }
  void activation_forward(Stream& stream, Activation a, const TensorView& b, const TensorView& c) override {
    run<&Kernels::activation_forward>(stream, a, b, c);
  }
  void activation_backward(Stream& stream, Activation a, const TensorView& b, const TensorView& c,
                           const TensorView& d) override {
    run<&Kernels::activation_backward>(stream, a, b, c, d);
  }
  void add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c) override {
    run<&Kernels::add>(stream, a, b, c);
  }
  void accumulate(Stream& stream, const TensorView& a, const TensorView& b) override {
    run<&Kernels::accumulate>(stream, a, b);
  }
  void scale_shift(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                   const TensorView& d) override {
    run<&Kernels::scale_shift>(stream, a, b, c, d);
  }
  void dropout(Stream& stream, const TensorView& a, float b, std::uint64_t c, int d, const StepScalars* e,
               const TensorView& f) override {
    run<&Kernels::dropout>(stream, a, b, c, d, e, f);
  }
  void shift_images(Stream& stream, const TensorView& a, const ImageShift& b, const TensorView& c) override {
    run<&Kernels::shift_images>(stream, a, b, c);
  }
  void max_pool_forward(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                        const PoolOptions& d) override {
    run<&Kernels::max_pool_forward>(stream, a, b, c, d);
  }
  void max_pool_backward(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& c,
                         const PoolOptions& d) override {
    run<&Kernels::max_pool_backward>(stream, a, b, c, d);
  }
  void global_average_pool_forward(Stream& stream, const TensorView& a, const TensorView& b) override {
    run<&Kernels::global_average_pool_forward>(stream, a, b);
  }
  void global_average_pool_backward(Stream& stream, const TensorView& a, const TensorView& b) override {
    run<&Kernels::global_average_pool_backward>(stream, a, b);
  }
  void batch_norm_train(Stream& stream, const TensorView& a, const BatchNorm& b, const StepScalars* c,
                        const TensorView& d) override {
    run<&Kernels::batch_norm_train>(stream, a, b, c, d);
  }
  void batch_norm_infer(Stream& stream, const TensorView& a, const BatchNorm& b, const TensorView& c) override {
    run<&Kernels::batch_norm_infer>(stream, a, b, c);
  }
  void batch_norm_backward(Stream& stream, const TensorView& a, const TensorView& b, const BatchNorm& c,
                           const StepScalars* d, const TensorView& e, const TensorView& f,
                           const TensorView& g) override {
    run<&Kernels::batch_norm_backward>(stream, a, b, c, d, e, f, g);
  }
  void softmax_cross_entropy(Stream& stream, const TensorView& a, const TensorView& b, float c,
                             const StepScalars* d, const TensorView& e, MetricSums* f) override {
    run<&Kernels::softmax_cross_entropy>(stream, a, b, c, d, e, f);
  }
  void softmax(Stream& stream, const TensorView& a, const TensorView& b) override {
    run<&Kernels::softmax>(stream, a, b);
  }
  void adam(Stream& stream, const Parameters& a, const TensorView& b, const TensorView& c, const TensorView& d,
            std::span<const UpdateRange<AdamOptions>> e, const StepScalars* f) override {
    run<&Kernels::adam>(stream, a, b, c, d, e, f);
  }
  void sgd(Stream& stream, const Parameters& a, const TensorView& b, const TensorView& c,
           std::span<const UpdateRange<SgdOptions>> d, const StepScalars* e) override {
    run<&Kernels::sgd>(stream, a, b, c, d, e);
  }
  void muon(Stream& stream, std::span<const MuonMatrix> a, const MuonOptions& b, const StepScalars* c) override {
    run<&Kernels::muon>(stream, a, b, c);
  }

 private:
  template <auto kMethod, typename... Arguments>
  void run(Stream& stream, const Arguments&... arguments) {
    const auto kernel = [this, all = std::make_tuple(kept(arguments)...)] {
      std::apply([this](const auto&... each) { (cpu_.kernels()->*kMethod)(*stream_, each...); }, all);
      stream_->synchronize();
    };
    CUDA_CHECK(launch(dynamic_cast<CudaStream&>(stream).handle(), kernel), stream.device().info().name);
  }

  CpuDevice cpu_;
  std::unique_ptr<Stream> stream_;
};

class FakeMath final : public CudaMath {
 public:
  std::unique_ptr<Kernels> create_kernels(const DeviceInfo&) const override {
    return std::make_unique<FakeCudaKernels>();
  }
  std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices) const override {
    throw DeviceError(ErrorCode::kUnsupported, "there is one GPU, and that is none", devices[0].info().name);
  }
  std::vector<Finding> diagnose() const override { return {}; }
};

}  // namespace

template <typename Out>
cudaError_t launch_input_kernel(const InputKernelArguments<Out>& arguments, ImageLayout layout,
                                cudaStream_t stream) {
  return launch(stream, [=] {
    for (std::int64_t image = 0; image < arguments.images; ++image) {
      for (std::int64_t pixel = 0; pixel < arguments.pixels; ++pixel) {
        for (int c = 0; c < arguments.channels; ++c) {
          const std::int64_t first = image * arguments.pixels * arguments.channels;
          const std::int64_t last = first + pixel * arguments.channels + c;
          const std::int64_t at =
              layout == ImageLayout::kChannelsLast ? last : first + c * arguments.pixels + pixel;
          const float value = static_cast<float>(arguments.in[last]) * arguments.scale[c] + arguments.shift[c];
          arguments.out[at] = cuda::element_of<Out>(value);
        }
      }
    }
  });
}
template cudaError_t launch_input_kernel(const InputKernelArguments<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const InputKernelArguments<BFloat16>&, ImageLayout, cudaStream_t);

template <typename Out>
cudaError_t launch_window_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  return launch(stream, [=] {
    const cuda::WindowGrid grid = window_grid(work, layout);
    cuda::WindowThread at{.x = 0, .y = 0, .thread = 0, .blocks_x = grid.x, .blocks_y = grid.y};
    for (at.x = 0; at.x < grid.x; ++at.x) {
      for (at.y = 0; at.y < grid.y; ++at.y) {
        for (at.thread = 0; at.thread < cuda::kWindowThreads; ++at.thread) run_windows(work, layout, at);
      }
    }
  });
}
template cudaError_t launch_window_kernel(const cuda::WindowWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_window_kernel(const cuda::WindowWork<BFloat16>&, ImageLayout, cudaStream_t);

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
