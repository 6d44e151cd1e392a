// The CPU's table of mathematics: checks shapes, binds arguments, submits. Private to the CPU backend.
#pragma once

#include <memory>

#include "headrace/devices/cpu/bf16_products.h"
#include "headrace/devices/kernels.h"

namespace headrace {

class CpuDevice;

// The kernels of `device`, which must outlive them.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device);
// With a choice of how bf16 products are made, which create_cpu_kernels() leaves to the processor.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, Bf16Products products);

}  // namespace headrace
