// A GPU's kernels on the host: the CUDA backend's own calls (gpu_kernels.h), their work run in loops
// (host_launcher.h). Products are the CPU's with f32 temporaries for bf16 activations, rounded once. In bf16
// precision it wants activations in bf16, as a GPU and a CPU do.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cuda/input_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/devices/kernels.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/host_launcher.h"
#include "headrace/tests/support/test_devices.h"

namespace headrace::test {

// Submits loops on the host in stream order.
class HostLaunches {
 public:
  template <typename Work>
  void submit(Stream& stream, const char*, const Work& work) {
    stream.call([work] { run_on_host(work); });
  }
  template <typename Work>
  void submit(Stream& stream, const char*, std::size_t scratch_bytes, const Work& work) {
    stream.call([work, scratch_bytes] { run_on_host(work, scratch_bytes); });
  }
};

// Streams and memory are those of a CPU device. One thread.
class TwinKernels : public cuda::GpuKernels<HostLaunches> {
 public:
  explicit TwinKernels(Device& cpu) : cpu_(cpu) {}

 private:
  void product(Stream& stream, const kernel::DenseForward& of) override;
  void product(Stream& stream, const kernel::DenseBackwardData& of) override;
  void product(Stream& stream, const kernel::DenseBackwardWeights& of) override;
  void product(Stream& stream, const kernel::BatchedMatmul& of) override;
  void product(Stream& stream, const kernel::ConvForward& of) override;
  void product(Stream& stream, const kernel::ConvBackwardData& of) override;
  void product(Stream& stream, const kernel::ConvBackwardWeights& of) override;
  void product(Stream& stream, const kernel::Muon& of) override { cpu_kernels().muon(stream, of); }

  Kernels& cpu_kernels() { return *cpu_.lane_kernels(); }
  // The view itself, or for bf16 an f32 temporary of its shape. One stream's calls reuse a slot's temporary.
  TensorView in_f32(Stream& stream, int slot, const TensorView& view);
  TensorView filled(Stream& stream, int slot, const TensorView& view);

  Device& cpu_;
  std::map<std::pair<const Stream*, int>, Buffer> temporaries_;
  std::deque<Buffer> outgrown_;  // captured work may refer to them
};

// The GPU's fused input kernels on the host: every block and every thread of the very work of the CUDA kernels
// (devices/cuda/input_work.h), so that their logic is tested without a GPU.
class TwinInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override {
    check_pixel_conversion(conversion);
    cuda::by_input_work(conversion, [&](const auto& work) {
      stream.call([work, layout = conversion.layout] { run_on_host(work, layout); });
    });
  }
  bool decodes_jpegs() const noexcept override { return true; }
  void decode_jpegs(Stream& stream, const JpegDecoding& decoding) override {
    cuda::jpeg::for_each_launch(decoding,
                                [&]<typename Step>(Step step, const cuda::jpeg::Rows& rows, int count, int items) {
                                  stream.call([=] { run_on_host(step, rows, count, items); });
                                });
  }
};

// A CPU replica that computes and converts as a GPU would.
class TwinDevice : public DiscreteDevice {
 public:
  explicit TwinDevice(std::unique_ptr<Device> inner) : DiscreteDevice(std::move(inner)), kernels_(this->inner()) {}

  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CpuStream>(*this, 1); }
  Kernels* kernels() noexcept override { return &kernels_; }
  Kernels* lane_kernels() noexcept override { return &kernels_; }
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

 private:
  TwinKernels kernels_;
  TwinInputKernels input_kernels_;
};

inline DeviceGroup twin_devices(int replicas) { return devices_of<TwinDevice>(replicas); }

}  // namespace headrace::test
