// The GPU's fused input kernel on the host: every block and every thread of the very work of the CUDA kernel
// (devices/cuda/window_work.h), so that its logic is tested without a GPU.
#pragma once

#include "headrace/devices/cuda/window_work.h"
#include "headrace/devices/input_kernels.h"

namespace headrace::test {

class TwinInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override {
    check_pixel_conversion(conversion);
    cuda::by_type(conversion.out.dtype, [&]<typename Out>(Out) {
      stream.call([work = cuda::window_work<Out>(conversion), layout = conversion.layout] { run(work, layout); });
    });
  }

 private:
  template <typename Out>
  static void run(const cuda::WindowWork<Out>& work, ImageLayout layout) {
    const cuda::WindowGrid grid = window_grid(work, layout);
    cuda::WindowThread at{.x = 0, .y = 0, .thread = 0, .blocks_x = grid.x, .blocks_y = grid.y};
    for (at.x = 0; at.x < grid.x; ++at.x) {
      for (at.y = 0; at.y < grid.y; ++at.y) {
        for (at.thread = 0; at.thread < cuda::kWindowThreads; ++at.thread) run_windows(work, layout, at);
      }
    }
  }
};

}  // namespace headrace::test
