// NCCL_CHECK: the one way NCCL's status codes become exceptions.
#pragma once

#include <nccl.h>

#include <string>

namespace headrace::detail {

// Throws the DeviceError that names the call, the device, NCCL's reason and what to try.
[[noreturn]] void throw_nccl_error(ncclResult_t status, const char* call, const std::string& device);

// A call of a non-blocking communicator may be under way still: that is no error.
inline bool failed(ncclResult_t status) noexcept { return status != ncclSuccess && status != ncclInProgress; }

}  // namespace headrace::detail

#define NCCL_CHECK(call, device)                                              \
  do {                                                                        \
    const ncclResult_t nccl_check_status = (call);                            \
    if (::headrace::detail::failed(nccl_check_status)) [[unlikely]]           \
      ::headrace::detail::throw_nccl_error(nccl_check_status, #call, device); \
  } while (false)
