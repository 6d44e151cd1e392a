// The GPU's input kernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/input_kernels.h"

namespace headrace {

class CudaInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override;
};

}  // namespace headrace
