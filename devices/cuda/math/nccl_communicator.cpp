#include <fmt/format.h>

#include <algorithm>
#include <deque>
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

using SteadyClock = std::chrono::steady_clock;

}  // namespace

ncclResult_t NcclGroup::end(ncclResult_t calls) noexcept {
  if (detail::failed(status_) || !std::exchange(open_, false)) return status_;
  status_ = ncclGroupEnd();
  if (detail::failed(calls)) status_ = calls;
  return status_;
}

NcclCommunicator::NcclCommunicator(std::string device, NcclLimit limit)
    : device_(std::move(device)), limit_(limit) {}

void NcclCommunicator::init(int ranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  NCCL_CHECK(ncclCommInitRankConfig(&made_, ranks, id, rank, &config), device_);
  handle_ = made_;
}

void NcclCommunicator::check(ncclResult_t status, const char* what) const {
  if (detail::failed(status) && handle_ != nullptr) detail::throw_nccl_error(status, what, device_);
}

// Returns the status of the last call; success once the communicator is aborted.
ncclResult_t NcclCommunicator::state_of(const Use& use) noexcept {
  if (use.handle() == nullptr) return ncclSuccess;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(use.handle(), &state);
  return asked == ncclSuccess ? state : asked;
}

std::string NcclCommunicator::failure() {
  const ncclResult_t now = state_of(Use(*this, std::try_to_lock));
  if (!detail::failed(now) || handle_ == nullptr) return {};
  return fmt::format("NCCL: {} ({})", ncclGetErrorString(now), device_);
}

void NcclCommunicator::await(const char* what, const NcclLimit& limit) {
  const auto deadline = SteadyClock::now() + limit.time;
  for (;;) {
    const ncclResult_t now = state_of(Use(*this));
    check(now, what);
    if (now != ncclInProgress) return;
    if (SteadyClock::now() > deadline) {
      throw DeviceError(
          ErrorCode::kTimeout,
          fmt::format("NCCL: {} took longer than {:g} s", what, std::chrono::duration<double>(limit.time).count()),
          device_, std::string(limit.hint) + "; NCCL_DEBUG=INFO says more");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

std::vector<ncclComm_t> NcclCommunicator::take(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept {
  std::vector<ncclComm_t> handles;
  for (const auto& each : group) {
    if (const ncclComm_t handle = each->handle_.exchange(nullptr); handle != nullptr) handles.push_back(handle);
  }
  if (handles.empty()) return handles;
  const auto used = [&] { return std::ranges::any_of(group, [](const auto& each) { return each->users_ != 0; }); };
  for (const auto end = SteadyClock::now() + kGrace; used() && SteadyClock::now() < end;)
    std::this_thread::sleep_for(kPoll);
  return handles;
}

void NcclCommunicator::abort(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept {
  const std::vector<ncclComm_t> handles = take(group);
  if (handles.empty()) return;
  const NcclGroup together;  // of several in one process none may wait for another
  for (const ncclComm_t handle : handles) ncclCommAbort(handle);
}

// Of all ranks, those of other processes too.
void NcclCommunicator::finalize(std::span<const std::unique_ptr<NcclCommunicator>> group) {
  std::deque<Use> uses;  // until the group's end, which makes the calls
  NcclGroup together;
  ncclResult_t status = ncclSuccess;
  for (const auto& each : group) {
    const Use& use = uses.emplace_back(*each);
    if (use.handle() != nullptr && !detail::failed(status)) status = ncclCommFinalize(use.handle());
  }
  status = together.end(status);
  uses.clear();
  for (const auto& each : group) each->check(status, "ncclCommFinalize");
  for (const auto& each : group) each->await("closing the connections");
}

// ncclCommDestroy() of a non-blocking communicator returns at once, whatever is in progress, so it is finalized
// first.
void NcclCommunicator::close(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept {
  try {
    finalize(group);
  } catch (const std::exception&) {
    return abort(group);  // there is nobody to tell
  }
  for (const ncclComm_t handle : take(group)) ncclCommDestroy(handle);
}

}  // namespace headrace
