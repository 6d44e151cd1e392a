#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/workers.h"

namespace headrace {
namespace {

constexpr int kFirstPort = 15'000, kPorts = 40'000;  // of ports chosen by a job's number

std::string_view value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : value;
}

std::optional<int> number_of(const Environment& environment, const char* name) {
  const std::string_view text = value_of(environment, name);
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// An address and its origin.
struct Address {
  std::string value = {};
  std::string from = {};
};

[[noreturn]] void refuse_address(const std::string& from, std::string_view value) {
  throw ConfigError(fmt::format("{} is '{}': it must be HOST:PORT with a port from 1 to 65535", from, value),
                    "name worker 0's address, as HEADRACE_COORDINATOR=node-a:29500");
}

Address checked(Address address) {
  const std::size_t colon = address.value.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse_address(address.from, address.value);
  const std::string_view port = std::string_view(address.value).substr(colon + 1);
  int number = 0;
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || rest != port.data() + port.size() || number < 1 || number > 65'535) {
    refuse_address(address.from, address.value);
  }
  return address;
}

// Returns a port that two jobs on one host rarely share.
int port_of_job(std::string_view job) { return kFirstPort + static_cast<int>(xxh3(job) % kPorts); }

// Returns the first host of a compressed list of Slurm: "gpu03" for "gpu[03-07,9],login".
std::string first_host(std::string_view list) {
  const std::size_t end = list.find_first_of("[,");
  if (end == std::string_view::npos || list[end] == ',') return std::string(list.substr(0, end));
  const std::size_t close = list.find(']', end);
  if (close == std::string_view::npos) return {};
  const std::string_view within = list.substr(end + 1, close - end - 1);
  const std::string_view rest = list.substr(close + 1);
  return fmt::format("{}{}{}", list.substr(0, end), within.substr(0, within.find_first_of("-,")),
                     rest.substr(0, rest.find(',')));
}

// Returns the addresses of TF_CONFIG's workers, by rank. launched_process() has read the rest of it.
std::vector<std::string> addresses_of_tf_config(const Environment& environment) {
  const nlohmann::json config = nlohmann::json::parse(value_of(environment, "TF_CONFIG"), nullptr, false);
  const nlohmann::json& cluster = config["cluster"];
  if (cluster.contains("ps")) {
    throw ConfigError("TF_CONFIG has parameter servers (\"ps\"): training by parameter server is not provided",
                      "use multi-worker mirrored training: list all hosts as \"worker\", or one as \"chief\"");
  }
  std::vector<std::string> addresses;
  for (const char* job : {"chief", "master", "worker"}) {
    if (!cluster.contains(job)) continue;
    for (const nlohmann::json& address : cluster[job]) {
      if (!address.is_string()) refuse_address("TF_CONFIG's " + std::string(job), address.dump());
      addresses.push_back(address.get<std::string>());
    }
  }
  return addresses;
}

// torchrun's own store may listen at MASTER_PORT.
Address torchrun_address(const Environment& environment) {
  const std::string_view host = value_of(environment, "MASTER_ADDR");
  const std::optional<int> port = number_of(environment, "MASTER_PORT");
  if (host.empty() || !port) return {};
  const bool bracketed = host.find(':') == std::string_view::npos;
  return {.value = fmt::format(fmt::runtime(bracketed ? "{}:{}" : "[{}]:{}"), host, *port + 1),
          .from = "MASTER_ADDR, MASTER_PORT + 1"};
}

Address slurm_address(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    const std::string host = first_host(value_of(environment, name));
    if (host.empty()) continue;
    const std::string job =
        fmt::format("{}.{}", value_of(environment, "SLURM_JOB_ID"), value_of(environment, "SLURM_STEP_ID"));
    return {.value = fmt::format("{}:{}", host, port_of_job(job)),
            .from = fmt::format("{}'s first host, a port by SLURM_JOB_ID and SLURM_STEP_ID", name)};
  }
  return {};
}

// MPI's launchers name no host: worker 0 can be found only if all processes are on one.
Address local_mpi_address(const Environment& environment, const char* local_size, const char* job, int workers) {
  if (number_of(environment, local_size) != workers || value_of(environment, job).empty()) return {};
  return {.value = fmt::format("127.0.0.1:{}", port_of_job(value_of(environment, job))),
          .from = fmt::format("{} says that all run on this host, a port by {}", local_size, job)};
}

struct LocalPlace {
  const char* launcher;
  const char* rank;
  const char* size;
};
constexpr std::array kLocalPlaces = {
    LocalPlace{"torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    LocalPlace{"Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    LocalPlace{"MVAPICH2", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    LocalPlace{"MPI", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    LocalPlace{"PMIx", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    LocalPlace{"Slurm", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

Address coordinator_of(const WorkerPlan& plan, const Environment& environment) {
  const std::string_view named = value_of(environment, "HEADRACE_COORDINATOR");
  if (!named.empty()) return {.value = std::string(named), .from = "HEADRACE_COORDINATOR"};
  if (!plan.addresses.empty()) return {.value = plan.addresses.front(), .from = "TF_CONFIG's first address"};
  if (plan.launcher == "torchrun") return torchrun_address(environment);
  if (plan.launcher == "Slurm") return slurm_address(environment);
  if (plan.launcher == "Open MPI" || plan.launcher == "PMIx") {
    for (const char* job : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
      const Address address = local_mpi_address(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", job, plan.workers);
      if (!address.value.empty()) return address;
    }
    return slurm_address(environment);
  }
  return {};
}

// Returns a variable by which a launcher tells MPI_Init() this process's place, with its value; empty without any.
std::string mpi_variable(const Environment& environment) {
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"}) {
    const std::string_view value = value_of(environment, name);
    if (!value.empty()) return fmt::format("{}={}", name, value);
  }
  return {};
}

bool starts_mpi(std::string_view launcher) {
  return launcher == "Open MPI" || launcher == "MVAPICH2" || launcher == "MPI" || launcher == "PMIx" ||
         launcher == "Slurm";
}

constexpr const char* kNoMpi = "none of PMIX_RANK, PMI_RANK and MV2_COMM_WORLD_RANK is set";

WorkerTransportKind demanded_transport(const Environment& environment) {
  const std::string_view wanted = value_of(environment, "HEADRACE_TRANSPORT");
  if (wanted.empty() || wanted == "auto") return WorkerTransportKind::kMpiOrGloo;
  if (wanted == "gloo") return WorkerTransportKind::kGloo;
  if (wanted == "mpi") return WorkerTransportKind::kMpi;
  throw ConfigError(fmt::format("HEADRACE_TRANSPORT is '{}': it must be auto, gloo or mpi", wanted),
                    "unset it: then MPI carries the values where mpirun or srun started the processes");
}

void plan_transport(WorkerPlan& plan, WorkerTransportKind demanded, const Environment& environment) {
  const std::string told = mpi_variable(environment);
  std::string from = "HEADRACE_TRANSPORT";
  if (demanded == WorkerTransportKind::kMpi && told.empty()) {
    throw ConfigError(
        fmt::format("HEADRACE_TRANSPORT=mpi, but {} started no MPI processes: {}", plan.launcher, kNoMpi),
        "start them with mpirun, or srun and its PMIx, or unset HEADRACE_TRANSPORT");
  }
  plan.transport = demanded;
  if (demanded == WorkerTransportKind::kMpiOrGloo) {
    const bool mpi = starts_mpi(plan.launcher) && !told.empty();
    if (!mpi) plan.transport = WorkerTransportKind::kGloo;
    from = mpi                         ? fmt::format("{} starts MPI processes: {}", plan.launcher, told)
           : starts_mpi(plan.launcher) ? fmt::format("{} started no MPI processes: {}", plan.launcher, kNoMpi)
                                       : fmt::format("{} starts no MPI processes", plan.launcher);
  }
  plan.facts.push_back({.name = "transport", .value = to_string(plan.transport), .from = std::move(from)});
}

}  // namespace

const char* to_string(WorkerTransportKind kind) noexcept {
  switch (kind) {
    case WorkerTransportKind::kGloo: return "gloo";
    case WorkerTransportKind::kMpi: return "mpi";
    case WorkerTransportKind::kMpiOrGloo: return "mpi or gloo";
  }
  return "";
}

WorkerPlan place_worker(const Environment& environment) {
  WorkerPlan plan;
  const std::optional<LaunchedProcess> process = launched_process(environment);
  if (!process) return plan;
  plan.launcher = process->launcher;
  if (!process->workers || !process->rank) {
    const std::string lacks = process->workers ? "which worker this one is" : "how many workers there are";
    throw ConfigError(fmt::format("{} started this process as one of several, but does not say {} ({})",
                                  process->launcher, lacks, process->said),
                      process->missing.empty() ? "set the variables RANK and WORLD_SIZE as well"
                                               : fmt::format("set {} as well", process->missing));
  }
  plan.rank = static_cast<int>(*process->rank);
  plan.workers = static_cast<int>(*process->workers);
  plan.facts.push_back({.name = "launcher", .value = plan.launcher, .from = process->said});
  plan.facts.push_back({.name = "world", .value = std::to_string(plan.workers), .from = process->said});
  plan.facts.push_back({.name = "rank", .value = std::to_string(plan.rank), .from = process->said});
  if (plan.launcher == "TensorFlow") plan.addresses = addresses_of_tf_config(environment);
  const auto place =
      std::ranges::find_if(kLocalPlaces, [&](const LocalPlace& each) { return plan.launcher == each.launcher; });
  if (place != kLocalPlaces.end()) {
    plan.local_rank = number_of(environment, place->rank).value_or(-1);
    plan.local_workers = number_of(environment, place->size).value_or(-1);
    if (plan.local_rank >= 0) {
      plan.facts.push_back({.name = "local rank", .value = std::to_string(plan.local_rank), .from = place->rank});
    }
  }
  return plan;
}

WorkerPlan place_worker() { return place_worker(std::getenv); }

WorkerPlan plan_workers(const Environment& environment) {
  const WorkerTransportKind transport = demanded_transport(environment);
  WorkerPlan plan = place_worker(environment);
  if (plan.launcher.empty()) return plan;
  Address coordinator = coordinator_of(plan, environment);
  if (coordinator.value.empty()) {
    throw ConfigError(
        fmt::format("{} does not say where worker 0 is", plan.launcher),
        "set HEADRACE_COORDINATOR=HOST:PORT, the same for all workers: worker 0's host and a free port "
        "there");
  }
  coordinator = checked(std::move(coordinator));
  plan.coordinator = coordinator.value;
  plan.facts.push_back({.name = "coordinator", .value = coordinator.value, .from = coordinator.from});
  plan_transport(plan, transport, environment);
  return plan;
}

WorkerPlan plan_workers() { return plan_workers(std::getenv); }

}  // namespace headrace
