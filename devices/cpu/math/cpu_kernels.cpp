#include "headrace/devices/cpu/math/cpu_kernels.h"

#include "headrace/devices/cpu/math/cpu_kernel_table.h"

namespace headrace {
namespace cpu {

CpuKernels::CpuKernels(const std::string& device, int threads, Bf16Products products)
    : onednn_(device, threads, products) {}

bool CpuKernels::prefers_bf16() const noexcept { return onednn_.bf16_products() == Bf16Products::kNative; }

// Half the bytes: moving them takes most of a step's time.
DType CpuKernels::activation_type(Precision precision) const noexcept {
  return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace cpu

std::unique_ptr<Kernels> create_cpu_kernels(const std::string& device, int threads, Bf16Products products) {
  return std::make_unique<cpu::CpuKernels>(device, threads, products);
}

}  // namespace headrace
