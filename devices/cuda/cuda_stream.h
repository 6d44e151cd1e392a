// A CUDA stream, its events, and the host functions in its order. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/cuda/shared_gpu.h"
#include "headrace/devices/event.h"
#include "headrace/devices/stream.h"

namespace headrace {

// A CUDA event, with or without timing.

enum class CudaTiming { kNo, kYes };

// wait() polls for a while and then blocks: a thread that kept polling would take a core from those that make
// batches.
class CudaEvent final : public Event {
 public:
  // Creates an event on the current device, called `device` in errors.
  CudaEvent(std::string device, CudaTiming timing, std::chrono::nanoseconds polling = {});
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  bool ready() const override;
  void wait() const override;
  std::optional<std::int64_t> ns_since(const Event& earlier) const override;

  cudaEvent_t handle() const noexcept { return event_; }

 private:
  std::string device_;
  CudaTiming timing_;
  std::chrono::nanoseconds polling_;
  cudaEvent_t event_ = nullptr;
};

// Host functions in the order of a CUDA stream, and the exceptions they throw.

// The first exception of a stream's host functions. Thread-safe: CUDA calls them on its own thread.
class HostFailure {
 public:
  // Throws DeviceError if there is no memory for the word.
  explicit HostFailure(const std::string& device);
  ~HostFailure();
  HostFailure(const HostFailure&) = delete;
  HostFailure& operator=(const HostFailure&) = delete;

  // Returns a word for kernels, in pinned host memory: not 0 while failed().
  const std::uint32_t* word() const noexcept { return word_; }
  bool failed() const noexcept { return error_.any(); }
  void keep(std::exception_ptr error) noexcept;
  // Returns and removes the exception; null if there was none.
  std::exception_ptr take() noexcept;

 private:
  void mark(bool failed) noexcept;

  std::mutex mutex_;  // so that both change together
  FirstError error_;
  std::uint32_t* word_ = nullptr;
};

// Receives a host function's exception; changes when captured work moves to another stream.
using FailureSlot = std::atomic<HostFailure*>;

// Owns functions from their submission until CUDA has called them (or no longer will).
class HostCalls {
 public:
  // Submits `function` to `stream`; it is skipped if its stream has failed by then.
  void submit(std::function<void()> function, const FailureSlot& failure, cudaStream_t stream,
              const std::string& device);
  // Forgets finished calls. Not for those of a graph, which are called again.
  void collect() noexcept;

 private:
  struct Call {
    std::function<void()> function;
    const FailureSlot* failure;
    std::atomic<bool> over{false};
  };

  static void CUDART_CB run(void* call) noexcept;

  std::deque<std::unique_ptr<Call>> calls_;
};

// A CUDA stream; captures become graphs.

// Submits several copies in one CUDA call.
class CopyBatch {
 public:
  // Returns false, with nothing submitted, if this CUDA has no batches. Throws DeviceError. REQUIRES: the stream's
  // device is current; the stream does not capture: CUDA refuses batches within a capture.
  bool submit(std::span<const MemoryCopy> copies, cudaStream_t stream, const std::string& device);

 private:
  cudaError_t submit(cudaStream_t stream);

  bool supported_ = true;
  // Kept from call to call.
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::vector<std::size_t> bytes_;
};

// An instantiated CUDA graph. Launched on one stream at a time: the errors of its host functions go to the
// stream of the last launch.
class CudaCapturedWork final : public CapturedWork {
 public:
  CudaCapturedWork() = default;
  ~CudaCapturedWork() override {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
  }
  CudaCapturedWork(const CudaCapturedWork&) = delete;
  CudaCapturedWork& operator=(const CudaCapturedWork&) = delete;

  cudaGraphExec_t executable = nullptr;
  HostCalls host_calls;
  FailureSlot failure{nullptr};
};

// Reports errors of device work to a stream's next synchronize(). Called after the work is done, on the
// synchronizing thread.
class StreamReport {
 public:
  virtual ~StreamReport() = default;
  // Returns the error that the work has left since the last call; null if there is none.
  virtual std::exception_ptr take() noexcept = 0;
};

// Two limits of CUDA are visible: a copy from or to pageable memory may block the host, and after the error of a
// host function only host functions and later submissions are skipped, not work already queued. Calls leave the
// stream's GPU as the calling thread's current device.
class CudaStream final : public Stream {
 public:
  // Creates a stream on the current device, which is the pool's. Priorities are CUDA's: 0 is the minimum, negative
  // ones come first.
  CudaStream(Device& device, CudaPool& pool, int priority = 0);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device& device() const noexcept override { return device_; }

  void synchronize() override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void follow(Stream& other) override;
  Buffer allocate(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void copy_together(std::span<const MemoryCopy> copies) override;
  void fill(void* to, unsigned char value, std::size_t bytes) override;
  void call(std::function<void()> function) override;
  void begin_capture() override;
  std::unique_ptr<CapturedWork> end_capture() override;
  void launch(CapturedWork& work) override;
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;

  cudaStream_t handle() const noexcept { return stream_; }
  // Returns whether new work should not be submitted because earlier work failed.
  bool skips() const noexcept { return origin_ == nullptr && failure_.failed(); }

  // While the stream belongs to another's capture, the word is that stream's, which then has the errors.
  const std::uint32_t* failure_word() const noexcept override {
    return origin_ == nullptr ? failure_.word() : origin_->failure_.word();
  }
  // Calls `report` at every synchronize() from now on, as long as it lives; while the stream belongs to another's
  // capture, that stream does. REQUIRES: called once per report.
  void listen_to(const std::shared_ptr<StreamReport>& report);

 private:
  void make_current() const;
  const std::string& name() const noexcept;
  std::exception_ptr take_reported() noexcept;
  void leave_capture() noexcept;
  [[noreturn]] void refuse(const std::string& message, const std::string& hint) const;

  Device& device_;
  CudaPool& pool_;
  SharedGpu::OpenStream counted_;
  cudaStream_t stream_ = nullptr;
  std::vector<std::weak_ptr<StreamReport>> reports_;
  HostFailure failure_;
  FailureSlot failure_slot_{&failure_};
  HostCalls host_calls_;
  CopyBatch copies_;
  CudaEvent here_;                             // the point up to which another stream follows this one
  std::unique_ptr<CudaCapturedWork> capture_;  // while capturing
  CudaStream* origin_ = nullptr;       // the stream to whose capture this one belongs; itself, another or null
  std::vector<CudaStream*> branches_;  // the others whose origin this is
};

}  // namespace headrace
