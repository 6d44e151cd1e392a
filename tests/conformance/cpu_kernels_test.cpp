// The CPU's kernels against the suites of Kernels.
#include "headrace/devices/cpu/math/cpu_kernels.h"

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/kernels_suite.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/test_devices.h"

namespace headrace::test {
namespace {

struct CpuKernelsTarget {
  static std::string absent() { return {}; }
  static DeviceGroup open() { return open_devices("cpu:1"); }
  static double slack() { return 1; }
};

// With bf16 products made in the way that this processor would not choose.
class OtherProducts final : public DiscreteDevice {
 public:
  explicit OtherProducts(std::unique_ptr<Device> cpu)
      : DiscreteDevice(std::move(cpu)),
        kernels_(create_cpu_kernels(inner().info().name, dynamic_cast<CpuDevice&>(inner()).threads(),
                                    has_fast_bf16() ? Bf16Products::kRounded : Bf16Products::kNative)) {}

  Kernels* kernels() noexcept override { return kernels_.get(); }

 private:
  std::unique_ptr<Kernels> kernels_;
};

struct OtherProductsTarget {
  static std::string absent() {
    return has_avx512() ? std::string() : "oneDNN makes bf16 products from AVX-512 on";
  }
  static DeviceGroup open() { return devices_of<OtherProducts>(1); }
  static double slack() { return 1; }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsAttentionSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsBatchNormSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsConvSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsDepthwiseSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsCountsSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsDenseSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsElementwiseSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsFusedNormSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsHalfProductsSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsHalfSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsJoiningSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsLossesSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsMuonSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsPoolingSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsSequencesSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsTrainingSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsUpdateSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsViewsSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(CpuOtherProducts, KernelsAttentionSuite, OtherProductsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(CpuOtherProducts, KernelsConvSuite, OtherProductsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(CpuOtherProducts, KernelsCountsSuite, OtherProductsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(CpuOtherProducts, KernelsDenseSuite, OtherProductsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(CpuOtherProducts, KernelsHalfProductsSuite, OtherProductsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(CpuOtherProducts, KernelsHalfSuite, OtherProductsTarget);

}  // namespace headrace::test
