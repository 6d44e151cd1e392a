#include "headrace/devices/cuda/math/nccl_check.h"

#include "headrace/devices/base/error.h"

namespace headrace::detail {

void throw_nccl_error(ncclResult_t status, const char* call, const std::string& device) {
  const bool usage = status == ncclInvalidArgument || status == ncclInvalidUsage;
  throw DeviceError(usage ? ErrorCode::kInvalidArgument : ErrorCode::kDevice,
                    std::string("NCCL: ") + ncclGetErrorString(status) + " [" + call + "]", device,
                    "NCCL_DEBUG=INFO says more");
}

}  // namespace headrace::detail
