// The CPU's tables of mathematics and of input kernels. Private to the CPU backend.
#pragma once

#include <memory>
#include <string>

#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// The CPU's table of mathematics: checks shapes, binds arguments, submits.

// Creates kernels whose errors name `device`. Products may use `threads` OpenMP threads, on which the order of
// their sums may depend.
std::unique_ptr<Kernels> create_cpu_kernels(const std::string& device, int threads,
                                            Bf16Products products = best_bf16_products());

// The CPU's input kernels: the reference for all others.

class CpuInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override;
};

}  // namespace headrace
