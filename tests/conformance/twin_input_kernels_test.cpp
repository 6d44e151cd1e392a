// The GPU's input kernel run by loops on the host, against the suite of InputKernels: its logic, without a GPU.
#include "headrace/tests/conformance/input_kernels_suite.h"
#include "headrace/tests/support/twin_kernels.h"

namespace headrace::test {
namespace {

struct TwinInput {
  static std::string absent() { return {}; }
  static DeviceGroup open(int replicas) { return twin_devices(replicas); }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(TwinInput, InputKernelsSuite, TwinInput);

}  // namespace headrace::test
