// The CPU's table of mathematics: checks shapes, binds arguments, submits. Private to the CPU backend.
#pragma once

#include <memory>

#include "headrace/devices/kernels.h"

namespace headrace {

// kNative is worth it only where AMX does it; with kRounded the inputs are rounded to bf16 and multiplied in f32,
// which means the same.
enum class Bf16Products { kNative, kRounded };

class CpuDevice;

// The kernels of `device`, which must outlive them. Products may use `threads` OpenMP threads, on which the order
// of their sums may depend.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, int threads);
// With a choice of how bf16 products are made, which the other one leaves to the processor.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, Bf16Products products);

}  // namespace headrace
