#include "headrace/devices/cpu/math/cpu_submission.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"

namespace headrace::cpu {

CpuStream& cpu_stream(Stream& stream) {
  auto* mine = dynamic_cast<CpuStream*>(&stream);
  if (mine == nullptr) {
    throw DeviceError(ErrorCode::kInvalidArgument, "CPU mathematics was submitted to another device's stream",
                      stream.device().info().name, "use the kernels() of the device that made the stream");
  }
  return *mine;
}

}  // namespace headrace::cpu
