// The world of workers that a process joined, in Python.
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

#include "headrace/devices/workers.h"

namespace headrace::python {

// Signs off without the interpreter's lock when the last owner lets go of it. A forked process leaves it alone.
class PythonWorkers {
 public:
  explicit PythonWorkers(std::shared_ptr<Workers> workers) : workers_(std::move(workers)) {}
  ~PythonWorkers();  // REQUIRES: the interpreter's lock
  PythonWorkers(const PythonWorkers&) = delete;
  PythonWorkers& operator=(const PythonWorkers&) = delete;

  // Throws ConfigError in a forked process: the connections are its parent's.
  const std::shared_ptr<Workers>& get() const;

 private:
  pid_t process_ = getpid();
  std::shared_ptr<Workers> workers_;
};
using WorkersPtr = std::shared_ptr<PythonWorkers>;

}  // namespace headrace::python
