// MPI in this process, and the mesh that it carries.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/workers/transport.h"

namespace headrace {

// MPI in this process: initialized once, finalized at an orderly end.

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

// The world's MPI processes as a mesh.

// Every call is started without blocking and then asked for, so that it ends at the time limit and by abort().
// Values go through buffers of the mesh: requests of a failed call may write them later.
class MpiMesh final : public Mesh {
 public:
  // Duplicates MPI_COMM_WORLD, so that messages of the embedding program are kept apart.
  MpiMesh(double timeout_seconds, const std::atomic<bool>& stop);
  ~MpiMesh() override;

  void all_reduce_sum(float* values, std::size_t count) override;
  void broadcast(std::byte* bytes, std::size_t count, int root) override;
  void abort() noexcept override;

 private:
  // Each worker sums the slice of its rank. All belongs to MPI while a request is open.
  struct Buffers {
    std::vector<float> values, parts;
    std::vector<int> slices, slice_begins;  // by rank, in values
    std::vector<int> shares, share_begins;  // by rank, of this worker's slice in parts
  };

  void require_usable() const;
  void divide(std::size_t count);
  void sum_whole(std::size_t count);
  void sum_slices(std::size_t count);
  void wait(MPI_Request& request, const std::atomic<bool>& stop) const;
  void give_up() noexcept;

  const double timeout_seconds_;
  const MpiUse use_;
  std::atomic<bool> aborted_{false};
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, workers_ = 0;
  std::unique_ptr<Buffers> buffers_ = std::make_unique<Buffers>();  // null once a call has failed
};

}  // namespace headrace
