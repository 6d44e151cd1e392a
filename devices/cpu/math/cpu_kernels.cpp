#include "headrace/devices/cpu/math/cpu_kernels.h"

#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"

namespace headrace {
namespace cpu {

CpuKernels::CpuKernels(const CpuDevice& device, int threads, Bf16Products products)
    : onednn_(device.info().name, threads, products) {}

bool CpuKernels::prefers_bf16() const noexcept { return onednn_.bf16_products() == Bf16Products::kNative; }

// Half the bytes: moving them takes most of a step's time.
DType CpuKernels::activation_type(Precision precision) const noexcept {
  return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace cpu

std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, int threads) {
  const Bf16Products products = has_fast_bf16() ? Bf16Products::kNative : Bf16Products::kRounded;
  return std::make_unique<cpu::CpuKernels>(device, threads, products);
}

std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device, Bf16Products products) {
  return std::make_unique<cpu::CpuKernels>(device, device.threads(), products);
}

}  // namespace headrace
