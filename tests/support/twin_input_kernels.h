// The GPU's fused input kernels on the host: every block and every thread of the very work of the CUDA kernels
// (devices/cuda/input_work.h), so that their logic is tested without a GPU.
#pragma once

#include "headrace/devices/cuda/input_work.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/tests/support/host_launcher.h"

namespace headrace::test {

class TwinInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override {
    check_pixel_conversion(conversion);
    cuda::by_input_work(conversion, [&](const auto& work) {
      stream.call([work, layout = conversion.layout] { run_on_host(work, layout); });
    });
  }
};

}  // namespace headrace::test
