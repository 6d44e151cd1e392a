// The interface of the workers module: the library that is opened at run time if a process is one of several.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/workers.h"

namespace headrace {

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

}  // namespace headrace
