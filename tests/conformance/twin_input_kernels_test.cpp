// The GPU's input kernel run by loops on the host, against the suite of InputKernels: its logic, without a GPU.
#include "headrace/tests/support/twin_input_kernels.h"
#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/input_kernels_suite.h"

namespace headrace::test {
namespace {

struct TwinInput {
  static std::string absent() { return {}; }
  static DeviceGroup open(int replicas) {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < replicas; ++i) {
      devices.push_back(
          std::make_unique<TwinInputDevice>(backends().front()->open(0, "gpu:" + std::to_string(i), 1)));
    }
    return DeviceGroup(std::move(devices));
  }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(TwinInput, InputKernelsSuite, TwinInput);

}  // namespace headrace::test
