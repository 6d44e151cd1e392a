// One rank of an NCCL group of GPUs. Private to the CUDA backend.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headrace::detail {

// Throws a DeviceError that names the call, the device, NCCL's reason and what to try.
[[noreturn]] void throw_nccl_error(ncclResult_t status, const char* call, const std::string& device);

// A call of a non-blocking communicator may still be in progress: that is no error.
inline bool failed(ncclResult_t status) noexcept { return status != ncclSuccess && status != ncclInProgress; }

}  // namespace headrace::detail

#define NCCL_CHECK(call, device)                                              \
  do {                                                                        \
    const ncclResult_t nccl_check_status = (call);                            \
    if (::headrace::detail::failed(nccl_check_status)) [[unlikely]]           \
      ::headrace::detail::throw_nccl_error(nccl_check_status, #call, device); \
  } while (false)

namespace headrace {

// Makes the calling thread's NCCL calls until end(), or the end of the scope, one group. An error also ends it.
class NcclGroup {
 public:
  NcclGroup() noexcept : status_(ncclGroupStart()) {}
  ~NcclGroup() { end(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Returns the first error of the group's start, `calls` and its end; else the end's status.
  ncclResult_t end(ncclResult_t calls = ncclSuccess) noexcept;

 private:
  ncclResult_t status_;
  bool open_ = true;
};

// How long a communicator may be in progress, and what sets the limit or may help, for the error.
struct NcclLimit {
  std::chrono::milliseconds time;
  const char* hint;
};

// A non-blocking communicator. One thread at a time makes calls on it; any other may call failure() and abort() at
// any time, even while a call is blocked.
class NcclCommunicator {
 public:
  // `limit` is that of calls and of close(). Errors call the GPU `device`.
  NcclCommunicator(std::string device, NcclLimit limit);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Throws DeviceError. REQUIRES: called between ncclGroupStart() and ncclGroupEnd(), with the GPU current.
  void init(int ranks, const ncclUniqueId& id, int rank);

  // Excludes other users, as NCCL asks, and keeps abort() from freeing the communicator at once.
  class Use {
   public:
    explicit Use(NcclCommunicator& of) : Use(of, std::unique_lock(of.one_user_)) {}
    // Waits for no other user.
    Use(NcclCommunicator& of, std::try_to_lock_t) noexcept
        : Use(of, std::unique_lock(of.one_user_, std::try_to_lock)) {}
    ~Use() { --of_.users_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Returns null once the communicator is aborted, or if there is another user.
    ncclComm_t handle() const noexcept { return handle_; }

   private:
    Use(NcclCommunicator& of, std::unique_lock<std::mutex> lock) noexcept : lock_(std::move(lock)), of_(of) {
      ++of_.users_;
      if (lock_) handle_ = of_.handle_;
    }

    std::unique_lock<std::mutex> lock_;
    NcclCommunicator& of_;
    ncclComm_t handle_ = nullptr;
  };

  // Makes `call(ncclComm_t)` and waits until NCCL has done it. Does nothing once the communicator is aborted, and
  // ignores the status of a call that was in progress then. Throws DeviceError, in which `what` names the call.
  template <typename Call>
  void submit(const char* what, const Call& call) {
    ncclResult_t status = ncclSuccess;
    {
      const Use use(*this);
      if (use.handle() != nullptr) status = call(use.handle());
    }
    check(status, what);
    await(what);
  }
  // Waits until NCCL has done its last call, or the communicator is aborted.
  void await(const char* what) { await(what, limit_); }
  void await(const char* what, const NcclLimit& limit);
  // Throws if the status is an error, unless the communicator is aborted.
  void check(ncclResult_t status, const char* what) const;
  // Returns NCCL's error, in words; empty if there is none, if a call is being made, which then has the error, or
  // once the communicator is aborted.
  std::string failure();

  // Aborts a whole group; the first thread to call does it. Does not wait for calls in progress: they return as
  // aborted. Afterwards no call reaches NCCL.
  static void abort(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept;
  // Closes a whole group: waits until submitted work is done. Aborts the group if that fails or takes too long.
  // REQUIRES: no more calls.
  static void close(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept;

 private:
  static ncclResult_t state_of(const Use& use) noexcept;
  static void finalize(std::span<const std::unique_ptr<NcclCommunicator>> group);
  // Takes the handles, so that no further user gets one, and leaves those who have one some time to return.
  static std::vector<ncclComm_t> take(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept;

  std::string device_;
  NcclLimit limit_;
  ncclComm_t made_ = nullptr;  // NCCL's own thread writes it while the group starts
  std::mutex one_user_;        // not abort()
  // A user counts itself before it reads the handle, take() takes the handle before it reads the count.
  std::atomic<ncclComm_t> handle_{nullptr};
  std::atomic<int> users_{0};
};

}  // namespace headrace
