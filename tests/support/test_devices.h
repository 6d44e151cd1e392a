// The devices that the suites of the engine and of the trainer run on. HEADRACE_TEST_DEVICES names them:
//   cpu, cpu:2            CPU replicas; `cpu` where the variable is not set
//   cuda:0, cuda:0x2      logical replicas on that GPU; `cuda` is `cuda:0`
//   cuda:0,1              a replica on each of these GPUs
//   discrete, discrete:2  CPU replicas that pretend to have memory of their own (discrete_device.h)
//   twin, twin:2          the same with a GPU's kernels run on the host (twin_kernels.h)
// The spec says what kind of device a test has. A test that asks for R replicas has R of them: the first R of
// several GPUs, or R logical ones on the first device where the spec names fewer. The spec's own count is what a
// test has that leaves the number open.
//
// A test whose devices this machine lacks ends where it asks for them: it is skipped, with the same reason in
// every test. A test that asks for none runs. Tests name a device themselves only where they say why.
#pragma once

#include <string>

#include "headrace/devices/device_group.h"
#include "headrace/devices/registry.h"

namespace headrace::test {

// `replicas` of the test devices. Throws what open_devices() throws for a malformed spec. In a test's body, its
// fixture and what they call; not within undisturbed(), which would keep the skip to itself.
DeviceGroup test_devices(int replicas, DeviceNeed need = DeviceNeed::kMemory);

// The count that HEADRACE_TEST_DEVICES names.
int test_replicas();

// What HEADRACE_TEST_DEVICES names, without a count: "cpu", "discrete", "twin", "cuda:0".
std::string test_kind();
// `replicas` of such a kind, for tests that compare two.
DeviceGroup devices_of_kind(const std::string& kind, int replicas, DeviceNeed need = DeviceNeed::kMemory);

// Devices whose memory the host cannot read: the test devices if they are such, else those of the kind
// `otherwise`.
DeviceGroup own_memory_devices(int replicas, const std::string& otherwise = "discrete",
                               DeviceNeed need = DeviceNeed::kMemory);

// Whether results are those of a GPU, whose libraries sum in other orders, which they choose by the shape of a
// batch. What is computed twice with the same shapes has the same bits there too.
bool on_gpu();
// Whether a row's product depends on how many rows there are: on a GPU, and on a CPU without AVX-512, where oneDNN
// chooses its order of sums by the shape.
bool sums_by_shape();
// What tolerances that were chosen for the CPU are multiplied with: 4 on a GPU, as for its kernels (sums in
// another order, functions of two units in the last place), else 1.
double slack();

// Why no test can run on a GPU here; empty where one can.
std::string why_no_gpu();

}  // namespace headrace::test
