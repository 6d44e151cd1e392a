// The meshes that carry values between the workers: Gloo, or MPI if all workers can use it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/workers.h"
#include "headrace/devices/workers/transport.h"

namespace gloo {

// Connections from every worker to every other, and Gloo's collectives over them.

template <typename T>
class AllreduceHalvingDoubling;
}  // namespace gloo

namespace headrace {

// Values go through buffers of the mesh: Gloo registers memory when an algorithm is made, and all workers must
// make theirs in one order.
class GlooMesh final : public Mesh {
 public:
  // Returns every worker's bytes, by rank.
  using Gather = std::function<std::vector<std::string>(std::string_view)>;

  // The others reach this host at `address`.
  GlooMesh(int rank, int workers, const std::string& address, double timeout_seconds);
  ~GlooMesh() override;
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  // Connects to the others; abort() ends it, too. REQUIRES: called once, first.
  void connect(const Gather& gather);

  void all_reduce_sum(float* values, std::size_t count) override;
  void broadcast(std::byte* bytes, std::size_t count, int root) override;
  void abort() noexcept override;

 private:
  class Connections;
  struct Sum;

  Sum& sum_of(std::size_t count);
  void sum_part(float* values, std::size_t count);

  std::shared_ptr<Connections> context_;
  std::map<std::size_t, std::unique_ptr<Sum>> sums_;  // by count
  std::uint64_t uses_ = 0;
};

// Which mesh the workers use: MPI's if all can, as they agree through the coordinator.

// One worker's answer on whether it can use MPI.
struct MpiOffer {
  WorkerTransportKind wanted = WorkerTransportKind::kGloo;
  std::string why_not = {};  // empty if it can use MPI
  std::string library = {};  // of one that has started MPI

  std::string to_json() const;
  static MpiOffer from_json(const std::string& json);
};

// Returns what all workers use, "mpi" or "gloo", and why; the same for the same offers. Throws WorkersDiffer if a
// worker must use MPI and another one cannot. `offers` are by rank.
WorkerFact choose_mesh(const std::vector<MpiOffer>& offers);

// The MPI module beside this library, or in the file that HEADRACE_MPI_MODULE names.
struct FoundMpi {
  const MpiModule* module = nullptr;
  std::string why_not = {};
};
FoundMpi find_mpi_module();

// Returns what this worker says before MPI is started. `found` is of use only if the plan wants MPI.
MpiOffer offer_of(const WorkerPlan& plan, const FoundMpi& found);
// Returns what it says once it is.
MpiOffer offer_of(const WorkerPlan& plan, const MpiPlace& place);

}  // namespace headrace
