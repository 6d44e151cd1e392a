// Which mesh the workers use: MPI's if all can, as they agree through the coordinator.
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/workers.h"
#include "headrace/devices/workers/mesh.h"

namespace headrace {

// What one worker says about MPI.
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
