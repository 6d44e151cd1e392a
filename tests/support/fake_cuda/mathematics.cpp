// What the CUDA backend launches, on the fake runtime: the mathematics are the CPU's, each call a kernel.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
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

 private:
  void product(Stream& stream, const kernel::DenseForward& of) override {
    on_cpu<&Kernels::dense_forward>(stream, of);
  }
  void product(Stream& stream, const kernel::DenseBackwardData& of) override {
    on_cpu<&Kernels::dense_backward_data>(stream, of);
  }
  void product(Stream& stream, const kernel::DenseBackwardWeights& of) override {
    on_cpu<&Kernels::dense_backward_weights>(stream, of);
  }
  void product(Stream& stream, const kernel::BatchedMatmul& of) override {
    on_cpu<&Kernels::batched_matmul>(stream, of);
  }
  void product(Stream& stream, const kernel::ConvForward& of) override {
    on_cpu<&Kernels::conv_forward>(stream, of);
  }
  void product(Stream& stream, const kernel::ConvBackwardData& of) override {
    on_cpu<&Kernels::conv_backward_data>(stream, of);
  }
  void product(Stream& stream, const kernel::ConvBackwardWeights& of) override {
    on_cpu<&Kernels::conv_backward_weights>(stream, of);
  }
  void product(Stream& stream, const kernel::Muon& of) override {
    const auto run = [this, of, matrices = std::vector(of.matrices.begin(), of.matrices.end())] {
      cpu_.kernels()->muon(*stream_, {matrices, of.options, of.scalars});
      stream_->synchronize();
    };
    submit_kernel(stream, run, name_of(of));
  }

  template <auto kFunction, typename Arguments>
  void on_cpu(Stream& stream, const Arguments& of) {
    const auto run = [this, of] {
      (cpu_.kernels()->*kFunction)(*stream_, of);
      stream_->synchronize();
    };
    submit_kernel(stream, run, name_of(of));
  }

  CpuDevice cpu_;
  std::unique_ptr<Stream> stream_;
};

class FakeMath final : public CudaMath {
 public:
  std::unique_ptr<Kernels> create_kernels(Device&) const override { return std::make_unique<FakeCudaKernels>(); }
  std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices,
                                                     std::shared_ptr<Workers> workers) const override {
    return std::make_unique<NcclCollective>(devices, std::move(workers));
  }
  std::vector<Finding> diagnose() const override { return {}; }
};

// Which kernels were loaded, by device.
std::array<std::atomic<bool>, 8> images_loaded, windows_loaded, jpegs_loaded;

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

cudaError_t load_jpeg_kernels() {
  test::fake_cuda::note("load jpeg kernels");
  jpegs_loaded[current_device()] = true;
  return cudaSuccess;
}
cudaError_t launch_jpeg_kernels(const JpegDecoding& decoding, cudaStream_t stream) {
  if (!jpegs_loaded[current_device()]) return cudaErrorLaunchTimeout;
  cudaError_t status = cudaSuccess;
  cuda::jpeg::for_each_launch(decoding,
                              [&]<typename Step>(Step step, const cuda::jpeg::Rows& rows, int count, int items) {
                                if (status == cudaSuccess)
                                  status = launch(stream, [=] { test::run_on_host(step, rows, count, items); });
                              });
  return status;
}

// Replicas of one host thread cannot wait for one another where streams run at once: here they only launch.
namespace cuda {
cudaError_t meet(const Rendezvous& r, const RendezvousCall&, cudaStream_t stream) {
  const auto kernel = [r] {
    if (!test::fake_cuda::meeting_times_out()) return;
    r.words->cancelled = kReplicaMissing;
    r.words->outcomes[r.replica] = static_cast<std::uint32_t>(Outcome::kTimedOut);
  };
  return launch(stream, kernel, "meet");
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
