#include "headrace/devices/collective.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_collective.h"

namespace headrace {

std::unique_ptr<Collective> create_collective(DeviceGroup& devices) {
  for (int replica = 0; replica < devices.size(); ++replica) {
    const DeviceInfo& info = devices[replica].info();
    if (info.kind == DeviceKind::kCpu) continue;
    throw DeviceError(ErrorCode::kUnsupported, "this build cannot all-reduce over " + devices.to_string(),
                      info.name, "use CPU replicas, as in cpu:2");
  }
  return std::make_unique<CpuCollective>(devices);
}

}  // namespace headrace
