#include "headrace/devices/workers/module/mesh_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shared_module.h"

namespace headrace {
namespace {

std::filesystem::path path_of_mpi_module() {
  const char* named = std::getenv("HEADRACE_MPI_MODULE");
  if (named != nullptr && *named != '\0') return named;
  return folder_of_code(reinterpret_cast<const void*>(&find_mpi_module)) / "libheadrace_mpi.so";
}

// Returns why a worker whose plan does not want MPI does not use it.
std::string reason_for_gloo(const WorkerPlan& plan) {
  const auto fact =
      std::ranges::find_if(plan.facts, [](const WorkerFact& each) { return each.name == "transport"; });
  return fact == plan.facts.end() ? "its plan says gloo" : fact->from;
}

}  // namespace

std::string MpiOffer::to_json() const {
  return nlohmann::json{{"wanted", static_cast<int>(wanted)}, {"why_not", why_not}, {"library", library}}.dump();
}

MpiOffer MpiOffer::from_json(const std::string& json) {
  const nlohmann::json said = nlohmann::json::parse(json);
  return {.wanted = static_cast<WorkerTransportKind>(said["wanted"].get<int>()),
          .why_not = said["why_not"],
          .library = said["library"]};
}

WorkerFact choose_mesh(const std::vector<MpiOffer>& offers) {
  const auto unable = std::ranges::find_if(offers, [](const MpiOffer& each) { return !each.why_not.empty(); });
  if (unable == offers.end()) {
    return {.name = "transport", .value = "mpi", .from = "all workers can use it: " + offers.front().library};
  }
  const std::string why = fmt::format("worker {}: {}", unable - offers.begin(), unable->why_not);
  const auto demanding = std::ranges::find(offers, WorkerTransportKind::kMpi, &MpiOffer::wanted);
  if (demanding == offers.end()) return {.name = "transport", .value = "gloo", .from = why};
  throw WorkersDiffer(
      fmt::format("worker {} has HEADRACE_TRANSPORT=mpi, but not all workers can use MPI: {}",
                  demanding - offers.begin(), why),
      "start all workers with one mpirun or srun and one value of HEADRACE_TRANSPORT, or unset it");
}

FoundMpi find_mpi_module() {
  const std::filesystem::path path = path_of_mpi_module();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return {.why_not = fmt::format("there is no {}: install libheadrace-mpi, or build with -DHEADRACE_MPI=on",
                                   path.string())};
  }
  const SharedModule opened = open_shared_module(path, kMpiModuleEntryName);
  if (opened.entry == nullptr) return {.why_not = opened.missing};
  if (const auto* module = reinterpret_cast<MpiModuleEntry>(opened.entry)(kMpiAbiVersion)) {
    return {.module = module};
  }
  return {.why_not = path.string() + " is from another build of Headrace"};
}

MpiOffer offer_of(const WorkerPlan& plan, const FoundMpi& found) {
  if (plan.transport == WorkerTransportKind::kGloo) return {.why_not = reason_for_gloo(plan)};
  return {.wanted = plan.transport, .why_not = found.why_not};
}

MpiOffer offer_of(const WorkerPlan& plan, const MpiPlace& place) {
  MpiOffer offer{.wanted = plan.transport, .why_not = place.why_not, .library = place.library};
  if (offer.why_not.empty() && (place.rank != plan.rank || place.workers != plan.workers)) {
    offer.why_not = fmt::format("MPI knows it as rank {} of {} ({}), the launcher as {} of {}", place.rank,
                                place.workers, place.library, plan.rank, plan.workers);
  }
  return offer;
}

}  // namespace headrace
