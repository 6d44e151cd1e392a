// MPI in this process: initialized once, finalized at an orderly end.
#pragma once

#include <atomic>
#include <string>

#include "headrace/devices/workers/mesh.h"

namespace headrace {

// Returns the text of an error code.
std::string mpi_error_text(int error);

// Does what MpiModule::start() says.
MpiPlace start_mpi(double timeout_seconds, const std::atomic<bool>& stop);

// Does what MpiModule::abandon() says. Thread-safe.
void abandon_mpi() noexcept;
// Returns whether calls of MPI are still possible and in order.
bool mpi_is_usable() noexcept;

// While one exists, an exit of the process is not in order: MPI is not finalized. Thread-safe.
class MpiUse {
 public:
  MpiUse() noexcept;
  ~MpiUse();
  MpiUse(const MpiUse&) = delete;
  MpiUse& operator=(const MpiUse&) = delete;
};

}  // namespace headrace
