// One rank of a group of GPUs, as NCCL knows it. Private to the CUDA backend.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
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

namespace headrace {

// Calls that NCCL makes together. From here to end(), or the end of the scope, the calling thread's NCCL calls
// are one group; it is ended also where an error leaves it.
class NcclGroup {
 public:
  NcclGroup() noexcept : status_(ncclGroupStart()) {}
  ~NcclGroup() { end(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // The first status that is an error, of the group's start, of `calls` and of its end; else the end's.
  ncclResult_t end(ncclResult_t calls = ncclSuccess) noexcept;

 private:
  ncclResult_t status_;
  bool open_ = true;
};

// A communicator that does not block. One thread at a time makes calls on it; abort() may come from any other at
// any moment, also while a call is blocked.
class NcclCommunicator {
 public:
  // Waits of await() and close() end after `patience`. `device` is what errors call the GPU.
  NcclCommunicator(std::string device, std::chrono::seconds patience);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Within ncclGroupStart() and ncclGroupEnd(), with the GPU current. Throws DeviceError.
  void init(int ranks, const ncclUniqueId& id, int rank);

  // Keeps abort() from freeing the communicator at once.
  class Use {
   public:
    explicit Use(NcclCommunicator& of) noexcept : of_(of) {
      ++of_.users_;
      handle_ = of_.handle_;
    }
    ~Use() { --of_.users_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Null once the communicator is aborted.
    ncclComm_t handle() const noexcept { return handle_; }

   private:
    NcclCommunicator& of_;
    ncclComm_t handle_ = nullptr;
  };

  // Makes `call(ncclComm_t)` and waits until NCCL has done what it was asked for. Nothing once the communicator
  // is aborted, whatever a call says that was under way then. `what` names the call in errors, DeviceError.
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
  // Until NCCL has done what it was asked for last, or the communicator is aborted.
  void await(const char* what);
  // Throws for a status that is an error, unless the communicator is aborted.
  void check(ncclResult_t status, const char* what) const;

  // All of a group, by whichever thread comes first. Does not wait for calls that are under way: they come back
  // as aborted. Afterwards no call reaches NCCL.
  static void abort(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept;
  // All of a group, that nobody uses any more: waits until what was submitted is done. Aborts them where that
  // fails or takes too long.
  static void close(std::span<const std::unique_ptr<NcclCommunicator>> group) noexcept;

 private:
  ncclResult_t state();

  std::string device_;
  std::chrono::seconds patience_;
  ncclComm_t made_ = nullptr;  // NCCL's own thread writes it while the group comes up
  // A user counts itself before it reads the handle, abort() takes the handle before it reads the count.
  std::atomic<ncclComm_t> handle_{nullptr};
  std::atomic<int> users_{0};
};

}  // namespace headrace
