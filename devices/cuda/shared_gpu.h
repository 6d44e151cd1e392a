// What the replicas of one GPU share in a process: memory in stream order, and the queues of its streams. Private
// to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace headrace {

// Thread-safe.
class SharedGpu {
 public:
  // Returns the instance of the GPU, which lives as long as someone holds it. Errors call it `device`. REQUIRES:
  // the GPU is current.
  static std::shared_ptr<SharedGpu> of(int ordinal, const std::string& device);
  ~SharedGpu();  // returns the pool's memory to the system; none of it may be in use
  SharedGpu(const SharedGpu&) = delete;
  SharedGpu& operator=(const SharedGpu&) = delete;

  // CUDA's own pool, which keeps released memory; null if the GPU has none: then memory comes from cudaMalloc.
  cudaMemPool_t pool() const noexcept { return pool_; }

  // A stream, for which there must be a queue if replicas wait on the GPU for one another (rendezvous.h).
  class OpenStream {
   public:
    // Throws DeviceError(kUnsupported) if replicas meet and there are already as many streams as queues.
    OpenStream(std::shared_ptr<SharedGpu> gpu, const std::string& device);
    ~OpenStream() { --gpu_->streams_; }
    OpenStream(const OpenStream&) = delete;
    OpenStream& operator=(const OpenStream&) = delete;

   private:
    std::shared_ptr<SharedGpu> gpu_;
  };

  // While one exists, replicas may wait for one another on the GPU.
  class Meeting {
   public:
    explicit Meeting(std::shared_ptr<SharedGpu> gpu) : gpu_(std::move(gpu)) { ++gpu_->meetings_; }
    ~Meeting() { --gpu_->meetings_; }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

   private:
    std::shared_ptr<SharedGpu> gpu_;
  };

 private:
  SharedGpu(int ordinal, const std::string& device);

  cudaMemPool_t pool_ = nullptr;
  std::atomic<int> streams_{0}, meetings_{0};
};

// One replica's part of its GPU's pool: memory that one replica releases, another may use. Thread-safe. REQUIRES:
// the GPU is current in calls.
class CudaPool {
 public:
  CudaPool(int ordinal, std::string device) : device_(std::move(device)), gpu_(SharedGpu::of(ordinal, device_)) {}

  // Allocates for work of the stream from now on; null if there is no memory, even after trimming kept memory.
  void* allocate(std::size_t bytes, cudaStream_t stream);
  // Releases memory after the stream's work so far.
  void release(void* data, std::size_t bytes, cudaStream_t stream) noexcept;

  // Returns the bytes that this replica uses.
  std::uint64_t used_bytes() const noexcept { return used_; }
  // Returns the GPU's bytes that are kept but unused.
  std::uint64_t idle_bytes() const noexcept;
  // Returns idle memory to the system.
  void trim() noexcept;

  const std::shared_ptr<SharedGpu>& gpu() const noexcept { return gpu_; }

 private:
  std::string device_;
  std::shared_ptr<SharedGpu> gpu_;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace headrace
