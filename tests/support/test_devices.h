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

#include "headrace/devices/device.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/tensor.h"
#include "headrace/pipeline/batch.h"
#include "headrace/tests/support/test.h"

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

// Groups of devices of a kind that only tests have.

// Each of them, "gpu:0" on, is made of a CPU replica and of what else is given.
template <typename Kind, typename... Given>
DeviceGroup devices_of(int count, const Given&... given) {
  const Backend& cpu = *backends().front();
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(std::make_unique<Kind>(cpu.open(0, "gpu:" + std::to_string(i), count), given...));
  }
  return DeviceGroup(std::move(devices));
}

// What stands in a device's memory, copied: tests that read it run on any device.

// `count` values from `from` on, in memory of `device`. What writes them must be done.
template <typename T>
std::vector<T> download(Device& device, const void* from, std::size_t count) {
  std::vector<T> values(count);
  const auto stream = device.create_stream();
  stream->copy(values.data(), from, count * sizeof(T));
  stream->synchronize();
  return values;
}

template <typename T>
std::vector<T> download(Device& device, const TensorView& tensor) {
  return download<T>(device, tensor.data, static_cast<std::size_t>(tensor.elements()));
}

// One value at `to`, in memory of `device`. What reads or writes it must be done.
template <typename T>
void upload(Device& device, T* to, T value) {
  const auto stream = device.create_stream();
  stream->copy(to, &value, sizeof value);
  stream->synchronize();
}

// A field of a batch in memory of `device`, once it is there: all rows, those of padding too.
template <typename T>
std::vector<T> download(Device& device, const Batch& batch, const std::string& field) {
  batch.ready().wait();
  return download<T>(device, batch.tensor(field));
}

// Only those of its examples.
template <typename T>
std::vector<T> download_examples(Device& device, const Batch& batch, const std::string& field) {
  std::vector<T> values = download<T>(device, batch, field);
  const std::int64_t row = batch.tensor(field).shape.without_front().elements();
  values.resize(static_cast<std::size_t>(batch.examples() * row));
  return values;
}

}  // namespace headrace::test
