// A CUDA stream; captures become graphs. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/cuda/cuda_event.h"
#include "headrace/devices/cuda/cuda_pool.h"
#include "headrace/devices/cuda/host_calls.h"
#include "headrace/devices/stream.h"

namespace headrace {

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
