#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/math/nccl_communicator.h"

namespace headrace::detail {

void throw_nccl_error(ncclResult_t status, const char* call, const std::string& device) {
  const bool usage = status == ncclInvalidArgument || status == ncclInvalidUsage;
  throw DeviceError(usage ? ErrorCode::kInvalidArgument : ErrorCode::kDevice,
                    std::string("NCCL: ") + ncclGetErrorString(status) + " [" + call + "]", device,
                    "NCCL_DEBUG=INFO says more");
}

}  // namespace headrace::detail

namespace headrace {
namespace {

constexpr auto kPoll = std::chrono::microseconds(50);
// Far more than a non-blocking call takes: after that it is blocked, and only abort() makes it return.
constexpr auto kGrace = std::chrono::milliseconds(100);

using Clock = std::chrono::steady_clock;

}  // namespace

ncclResult_t NcclGroup::end(ncclResult_t calls) noexcept {
  if (detail::failed(status_) || !std::exchange(open_, false)) return status_;
  status_ = ncclGroupEnd();
  if (detail::failed(calls)) status_ = calls;
  return status_;
}

NcclCommunicator::NcclCommunicator(std::string device, std::chrono::seconds patience)
    : device_(std::move(device)), patience_(patience) {}

void NcclCommunicator::init(int ranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  NCCL_CHECK(ncclCommInitRankConfig(&made_, ranks, id, rank, &config), device_);
  handle_ = made_;
}

void NcclCommunicator::check(ncclResult_t status, const char* what) const {
  if (detail::failed(status) && handle_ != nullptr) detail::throw_nccl_error(status, what, device_);
}

// Returns the status of its last call; success once it is aborted.
ncclResult_t NcclCommunicator::state() {
  const Use use(*this);
  if (use.handle() == nullptr) return ncclSuccess;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(use.handle(), &state);
  return asked == ncclSuccess ? state : asked;
}

void NcclCommunicator::await(const char* what) {
  const auto deadline = Clock::now() + patience_;
  for (;;) {
    const ncclResult_t now = state();
    check(now, what);
    if (now != ncclInProgress) return;
    if (Clock::now() > deadline) {
      throw DeviceError(ErrorCode::kTimeout,
                        fmt::format("NCCL: {} took longer than {} s", what, patience_.count()), device_,
                        "HEADRACE_COLLECTIVE_TIMEOUT sets the limit; NCCL_DEBUG=INFO says more");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void NcclCommunicator::abort(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept {
  std::vector<ncclComm_t> handles;
  for (const auto& each : group) {
    if (const ncclComm_t handle = each->handle_.exchange(nullptr); handle != nullptr) handles.push_back(handle);
  }
  if (handles.empty()) return;
  const auto used = [&] { return std::ranges::any_of(group, [](const auto& each) { return each->users_ != 0; }); };
  for (const auto end = Clock::now() + kGrace; used() && Clock::now() < end;) std::this_thread::sleep_for(kPoll);
  const NcclGroup together;  // of several in one process none may wait for another
  for (const ncclComm_t handle : handles) ncclCommAbort(handle);
}

// ncclCommDestroy() of a non-blocking communicator returns at once, whatever is in progress, so it is finalized
// first; all ranks take part in that.
void NcclCommunicator::close(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept {
  try {
    NcclGroup together;
    ncclResult_t status = ncclSuccess;
    for (const auto& each : group) {
      const ncclComm_t handle = each->handle_;
      if (handle != nullptr && !detail::failed(status)) status = ncclCommFinalize(handle);
    }
    status = together.end(status);
    for (const auto& each : group) each->check(status, "ncclCommFinalize");
    for (const auto& each : group) each->await("closing the connections");
  } catch (const std::exception&) {
    return abort(group);  // there is nobody to tell
  }
  for (const auto& each : group) {
    if (const ncclComm_t handle = each->handle_.exchange(nullptr); handle != nullptr) ncclCommDestroy(handle);
  }
}

}  // namespace headrace
