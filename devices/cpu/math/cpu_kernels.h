// The CPU's table of mathematics: checks shapes, binds arguments, submits. Private to the CPU backend.
#pragma once

#include <memory>

#include "headrace/devices/kernels.h"

namespace headrace {

// kNative pays off with has_fast_bf16(); kRounded rounds the inputs to bf16 and multiplies in f32, which is
// equivalent.
enum class Bf16Products { kNative, kRounded };

class CpuDevice;

// Creates the kernels of `device`, which must outlive them. Products may use `threads` OpenMP threads, on which
// the order of their sums may depend.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, int threads);
// Creates kernels with the given kind of bf16 products; the other overload lets the processor decide.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, Bf16Products products);

}  // namespace headrace
