// The CPU's input kernels: the reference for all others. Private to the CPU backend.
#pragma once

#include "headrace/devices/input_kernels.h"

namespace headrace {

class CpuInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override;
};

}  // namespace headrace
