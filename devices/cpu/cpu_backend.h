// The CPU's devices and what the registry knows of them. Private to the CPU backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "headrace/devices/backend.h"
#include "headrace/devices/cpu/math/cpu_kernels.h"
#include "headrace/devices/device.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// One CPU replica: ordinary memory, worker threads as streams.

class OpenMpOversubscription;
class OpenMpWaiting;

class CpuDevice final : public Device {
 public:
  // Mathematics submitted to one of its streams may use `threads` OpenMP threads. One is best for several
  // replicas, or beside an input pipeline. Keeps `waiting`, which may be null, alive.
  explicit CpuDevice(std::string name, int threads = 1, std::shared_ptr<OpenMpWaiting> waiting = nullptr);
  ~CpuDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  MemoryUse memory_use() const noexcept override;
  int threads() const noexcept { return threads_; }

  std::unique_ptr<Stream> create_stream() override;
  std::unique_ptr<Event> create_event() override;
  std::unique_ptr<Event> create_timed_event() override;
  Buffer allocate(std::size_t bytes) override { return allocate(bytes, MemoryPlace::kDevice); }
  Buffer allocate_pinned(std::size_t bytes) override { return allocate(bytes, MemoryPlace::kPinned); }
  Kernels* kernels() noexcept override;
  int lanes() const noexcept override { return threads_; }
  std::unique_ptr<Stream> create_lane() override;
  Kernels* lane_kernels() noexcept override { return lane_kernels_.get(); }
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;

 private:
  Buffer allocate(std::size_t bytes, MemoryPlace place);
  std::atomic<std::uint64_t>& counter(MemoryPlace place) noexcept;

  DeviceInfo info_;
  int threads_;
  std::shared_ptr<OpenMpWaiting> waiting_;
  std::mutex mutex_;
  std::weak_ptr<OpenMpOversubscription> sleeping_;  // by mutex_; the lanes have it
  std::atomic<std::uint64_t> device_bytes_{0};
  std::atomic<std::uint64_t> pinned_bytes_{0};
  CpuInputKernels input_kernels_;
  std::unique_ptr<Kernels> kernels_, lane_kernels_;
};

// Returns the info of a replica called `name`, without opening it.
DeviceInfo describe_cpu(std::string name);

// The backend that is always available.

class OpenMpWaiting;

// Opens any number of replicas on the same CPU. The mathematics of each stream uses its share of the cores in
// OpenMP threads, at least one; HEADRACE_CPU_THREADS sets another number.
class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::vector<DeviceInfo> list() const override;
  std::unique_ptr<Device> open(int ordinal, const std::string& name, int local_replicas) const override;
  // Creates a collective within the process that adds as one pairwise tree.
  std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const override;
  std::vector<Finding> diagnose() const override;

 private:
  std::shared_ptr<OpenMpWaiting> waiting() const;

  mutable std::mutex mutex_;
  mutable std::weak_ptr<OpenMpWaiting> waiting_;  // shared by the devices that are open
};

}  // namespace headrace
