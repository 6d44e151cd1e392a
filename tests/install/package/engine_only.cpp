// Links to the engine and to nothing of the trainer.
#include <headrace/devices/base/shape.h>
#include <headrace/devices/registry.h>

#include <cstdio>

int main() {
  const headrace::DeviceGroup devices = headrace::open_devices("cpu:2", headrace::DeviceNeed::kMemory);
  std::printf("%s\n", devices.to_string().c_str());
  for (const headrace::Finding& finding : headrace::missing_backends()) std::printf("%s\n", finding.hint.c_str());
}
