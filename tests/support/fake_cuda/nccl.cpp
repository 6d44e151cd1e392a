#include "headrace/tests/support/fake_cuda/nccl.h"

#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "headrace/tests/support/fake_cuda/runtime.h"

struct ncclComm {
  bool finalized = false, gone = false;
  int looks = 0;  // for which it is in progress
};

namespace headrace::test::fake_nccl {
namespace {

struct Library {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocks = false, under_way = false;
  std::chrono::milliseconds each{0};
  std::optional<Failing> failing;
  int looks = 0, looks_at_end = 0;
  std::vector<std::string> misuses;
  std::deque<ncclComm> communicators;  // kept for ever, so that one which is used too long is found out
};

Library& library() {
  static Library one;
  return one;
}

thread_local int groups = 0;

// By the library's mutex.
bool may_use(const char* name, const ncclComm* communicator) {
  fake_cuda::note(name);
  if (communicator != nullptr && !communicator->gone) return true;
  library().misuses.push_back(std::string(name) + " of a communicator that is gone");
  return false;
}

ncclResult_t submit(const char* name, ncclComm_t communicator, cudaStream_t stream) {
  Library& all = library();
  {
    std::unique_lock lock(all.mutex);
    if (const auto each = all.each; each.count() > 0) {
      all.under_way = true;
      all.changed.notify_all();
      lock.unlock();
      std::this_thread::sleep_for(each);
      lock.lock();
    }
    if (!may_use(name, communicator)) return ncclInvalidArgument;
    communicator->looks = all.looks;
    if (all.blocks) {
      all.under_way = true;
      all.changed.notify_all();
      all.changed.wait(lock, [&] { return communicator->gone || !all.blocks; });
      return ncclInternalError;
    }
  }
  return fake_cuda::launch(
             stream, [] {}, "NCCL's kernel") == cudaSuccess
             ? ncclInProgress
             : ncclUnhandledCudaError;
}

}  // namespace

void block_calls() {
  const std::lock_guard lock(library().mutex);
  library().blocks = true;
}

void slow_calls(std::chrono::milliseconds each) {
  const std::lock_guard lock(library().mutex);
  library().each = each;
}

bool wait_until_under_way() {
  std::unique_lock lock(library().mutex);
  return library().changed.wait_for(lock, std::chrono::seconds(20), [] { return library().under_way; });
}

void dawdle(int looks, int looks_at_end) {
  const std::lock_guard lock(library().mutex);
  library().looks = looks;
  library().looks_at_end = looks_at_end;
}

void fail_to_connect(Failing when) {
  const std::lock_guard lock(library().mutex);
  library().failing = when;
}

std::vector<std::string> misuses() {
  const std::lock_guard lock(library().mutex);
  return library().misuses;
}

void clear() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  all.blocks = all.under_way = false;
  all.each = {};
  all.failing.reset();
  all.looks = all.looks_at_end = 0;
  all.misuses.clear();
  all.changed.notify_all();
}

}  // namespace headrace::test::fake_nccl

namespace nccl_fake = headrace::test::fake_nccl;

extern "C" {

const char* ncclGetErrorString(ncclResult_t status) {
  return status == ncclSystemError ? "the network is down" : "an error of a test";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++nccl_fake::groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (nccl_fake::groups-- > 0) return ncclInProgress;
  const std::lock_guard lock(nccl_fake::library().mutex);
  nccl_fake::library().misuses.emplace_back("the end of a group that did not begin");
  return ncclInvalidUsage;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int, ncclUniqueId, int, ncclConfig_t* config) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  headrace::test::fake_cuda::note("ncclCommInitRankConfig");
  if (config->blocking != 0) nccl_fake::library().misuses.emplace_back("a communicator that blocks");
  if (nccl_fake::library().failing == nccl_fake::Failing::kWhenMade) return ncclSystemError;
  *made = &nccl_fake::library().communicators.emplace_back();
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* status) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommGetAsyncError", communicator)) return ncclInvalidArgument;
  if (nccl_fake::library().failing) return *status = ncclSystemError, ncclSuccess;
  *status = communicator->looks == 0 ? ncclSuccess : ncclInProgress;
  if (communicator->looks > 0) --communicator->looks;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommFinalize", communicator)) return ncclInvalidArgument;
  communicator->finalized = true;
  communicator->looks = nccl_fake::library().looks_at_end;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommDestroy", communicator)) return ncclInvalidArgument;
  if (!communicator->finalized || communicator->looks != 0) {
    nccl_fake::library().misuses.emplace_back("the end of a communicator that was at work");
  }
  communicator->gone = true;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommAbort", communicator)) return ncclInvalidArgument;
  communicator->gone = true;
  nccl_fake::library().changed.notify_all();
  return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t communicator,
                           cudaStream_t stream) {
  return nccl_fake::submit("ncclAllReduce", communicator, stream);
}
ncclResult_t ncclBroadcast(const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t communicator,
                           cudaStream_t stream) {
  return nccl_fake::submit("ncclBroadcast", communicator, stream);
}
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int, ncclComm_t communicator,
                      cudaStream_t stream) {
  return nccl_fake::submit("ncclSend", communicator, stream);
}
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t communicator, cudaStream_t stream) {
  return nccl_fake::submit("ncclRecv", communicator, stream);
}

}  // extern "C"
