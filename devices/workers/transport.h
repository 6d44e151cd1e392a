// The interfaces of the modules that are opened at run time if a process is one of several: the workers module,
// and the MPI module, which that one opens.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/workers.h"

namespace headrace {

// The interface of the workers module: the library that is opened at run time if a process is one of several.

// Has the thread contract of Workers. Calls throw DeviceError: kTimeout, kCancelled.
class WorkerTransport {
 public:
  virtual ~WorkerTransport() = default;

  virtual int rank() const noexcept = 0;
  virtual const std::vector<WorkerInfo>& members() const noexcept = 0;
  virtual const WorkerFact& transport() const noexcept = 0;

  virtual std::vector<std::string> all_gather(std::string_view mine, std::string_view what) = 0;
  // REQUIRES: the same `count` on all workers.
  virtual void all_reduce_sum(float* values, std::size_t count) = 0;
  virtual void broadcast(std::byte* bytes, std::size_t count, int root) = 0;

  virtual void set_moment(std::string moment) = 0;
  virtual void sign_off() noexcept = 0;
  virtual void abort(const std::string& reason) noexcept = 0;
  // Returns which worker failed first and why; empty while none has. Thread-safe.
  virtual std::string failure() const = 0;
};

class WorkerModule {
 public:
  virtual ~WorkerModule() = default;

  // Returns when all workers of the plan have joined. `build` identifies the program. Throws WorkersDiffer if
  // workers have different builds or do not fit together otherwise: on all workers that wait, as soon as one is
  // refused.
  virtual std::unique_ptr<WorkerTransport> join(const WorkerPlan& plan, const WorkerOptions& options,
                                                const std::string& build) const = 0;
};

// Increment whenever one of the classes above changes its layout.
inline constexpr int kWorkerAbiVersion = 4;

// The `extern "C"` function that a module exports. Returns null if it was built for another ABI version.
using WorkerModuleEntry = const WorkerModule* (*)(int abi_version);
inline constexpr const char* kWorkerModuleEntryName = "headrace_workers";

// The transport that carries values between the workers' processes, and the interface of the MPI module: the
// library that the workers module opens at run time if MPI may do it.

// One thread at a time, except for abort(). Calls throw std::runtime_error or another std::exception that says
// what happened but not which worker failed; after one that threw, every call throws.
class Mesh {
 public:
  virtual ~Mesh() = default;

  // Sums over all workers in place: the pairwise tree ((0+1)+(2+3))+... over ranks for each element.
  virtual void all_reduce_sum(float* values, std::size_t count) = 0;
  virtual void broadcast(std::byte* bytes, std::size_t count, int root) = 0;

  // Makes the waiting call and all later ones throw. Thread-safe.
  virtual void abort() noexcept = 0;
};

// This process among those that MPI knows.
struct MpiPlace {
  std::string library = {};  // "Open MPI 4.1.4"
  std::string why_not = {};  // why this process cannot use MPI; else empty
  int rank = 0;
  int workers = 0;
};

// start() and connect() wait for all other workers, at most the given time, and throw std::runtime_error when it
// is over or `stop` is set.
class MpiModule {
 public:
  virtual ~MpiModule() = default;

  // Initializes MPI if nobody has; then it is finalized when the process exits, unless abandon() was called.
  virtual MpiPlace start(double timeout_seconds, const std::atomic<bool>& stop) const = 0;
  // REQUIRES: all workers have started with the ranks of their plans.
  virtual std::unique_ptr<Mesh> connect(double timeout_seconds, const std::atomic<bool>& stop) const = 0;

  // Leaves MPI as it is when the process exits, since finalizing it would wait for a failed worker. Thread-safe.
  virtual void abandon() const noexcept = 0;
};

// Increment whenever one of the classes above changes its layout.
inline constexpr int kMpiAbiVersion = 1;

// The `extern "C"` function that the module exports. Returns null if it was built for another ABI version.
using MpiModuleEntry = const MpiModule* (*)(int abi_version);
inline constexpr const char* kMpiModuleEntryName = "headrace_mpi";

}  // namespace headrace
