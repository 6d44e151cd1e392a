#include "headrace/devices/cuda/math/nccl_group.h"

#include <utility>

#include "headrace/devices/cuda/math/nccl_check.h"

namespace headrace {

ncclResult_t NcclGroup::end(ncclResult_t calls) noexcept {
  if (detail::failed(status_) || !std::exchange(open_, false)) return status_;
  status_ = ncclGroupEnd();
  if (detail::failed(calls)) status_ = calls;
  return status_;
}

}  // namespace headrace
