#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
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

// Returns std::nullopt if it is not set.
std::optional<int> number_of(const Environment& environment, const char* name) {
  const std::string_view text = value_of(environment, name);
  if (text.empty()) return std::nullopt;
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < 0) {
    throw ConfigError(fmt::format("{} is '{}': it must be a whole number of at least 0", name, text),
                      fmt::format("unset {}, or have the launcher set it", name));
  }
  return number;
}

// An address and its origin.
struct Address {
  std::string value = {};
  std::string from = {};
};

[[noreturn]] void refuse_address(const std::string& from, std::string_view value, std::string_view why) {
  throw ConfigError(
      fmt::format("{} is '{}': {}", from, value, why),
      "name worker 0's address, as HEADRACE_COORDINATOR=node-a:29500, 10.0.0.5:29500 or [fd00::5]:29500");
}

bool is_in_numbers(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(family, host.c_str(), bytes.data()) == 1;
}

// Returns what is wrong with a host, without asking for its address; empty for none.
std::string_view fault_of_host(const std::string& host) {
  constexpr std::size_t kMaxHost = 253;
  if (host.empty()) return "it must be HOST:PORT with a port from 1 to 65535";
  if (host.front() == '[') {
    const std::string within = host.substr(1, host.find_first_of("%]") - 1);  // without a zone
    return host.back() == ']' && is_in_numbers(AF_INET6, within) ? ""
                                                                 : "what is in brackets must be an IPv6 address";
  }
  if (host.find(':') != std::string::npos) return "an IPv6 address must be in brackets, as [fd00::5]:29500";
  const auto in_names = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  if (!std::ranges::all_of(host, in_names) || host.front() == '-' || host.front() == '.' ||
      host.size() > kMaxHost || host.find("..") != std::string::npos)
    return "the name of a host has letters, digits, dots and hyphens";
  const bool digits = host.find_first_not_of("0123456789.") == std::string::npos;
  return !digits || is_in_numbers(AF_INET, host) ? "" : "an IPv4 address has four numbers from 0 to 255";
}

// Throws unless the address can be one. Whether there is such a host is seen when its worker is called.
void check_address(const Address& address) {
  const std::string& value = address.value;
  if (value.find("://") != std::string::npos) {
    refuse_address(address.from, value, "it must be HOST:PORT, without a scheme or a path");
  }
  const std::size_t colon = value.rfind(':');
  const std::string_view port = colon == std::string::npos ? "" : std::string_view(value).substr(colon + 1);
  const std::string host = value.substr(0, colon);
  if (!value.starts_with('[') && is_in_numbers(AF_INET6, value)) {
    refuse_address(address.from, value, "an IPv6 address must be in brackets and have a port, as [fd00::5]:29500");
  }
  int number = 0;
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || rest != port.data() + port.size() || number < 1 || number > 65'535) {
    refuse_address(address.from, value, "it must be HOST:PORT with a port from 1 to 65535");
  }
  if (const std::string_view fault = fault_of_host(host); !fault.empty()) {
    refuse_address(address.from, value, fault);
  }
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
      addresses.push_back(address.get<std::string>());
      check_address({.value = addresses.back(), .from = fmt::format("an address of TF_CONFIG's {}", job)});
    }
  }
  return addresses;
}

// torchrun's own store may listen at MASTER_PORT.
Address torchrun_address(const Environment& environment) {
  const std::string_view host = value_of(environment, "MASTER_ADDR");
  const std::optional<int> port = number_of(environment, "MASTER_PORT");
  if (host.empty() || !port) return {};
  const bool bare = is_in_numbers(AF_INET6, std::string(host));  // as torchrun has it
  return {.value = fmt::format(fmt::runtime(bare ? "[{}]:{}" : "{}:{}"), host, *port + 1),
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

// What people set by hand may contradict itself. Slurm's count is what was asked for, not what runs.
void require_place_on_host(const WorkerPlan& plan, const LocalPlace& place) {
  if (plan.launcher == "Slurm") return;
  const bool outside = plan.local_workers >= 0 && plan.local_rank >= plan.local_workers;
  if (!outside && plan.local_workers <= plan.workers && plan.local_rank < plan.workers) return;
  throw ConfigError(fmt::format("{}={} and {}={} do not fit worker {} of {}", place.rank, plan.local_rank,
                                place.size, plan.local_workers, plan.rank, plan.workers),
                    "have the launcher set them, or unset both");
}

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

// Returns which of some variables are set, in words; empty if all or none are.
std::string half_of(const Environment& environment, std::span<const char* const> names) {
  std::string set, lacking;
  for (const char* name : names) {
    std::string& list = value_of(environment, name).empty() ? lacking : set;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return set.empty() || lacking.empty() ? "" : fmt::format("{} without {}", set, lacking);
}

void plan_guard(WorkerPlan& plan, const Environment& environment) {
  constexpr std::array kTls{"HEADRACE_WORLD_TLS_CA", "HEADRACE_WORLD_TLS_CERTIFICATE", "HEADRACE_WORLD_TLS_KEY"};
  constexpr std::array kSecrets{"HEADRACE_WORLD_SECRET", "HEADRACE_WORLD_SECRET_FILE"};
  if (const std::string half = half_of(environment, kTls); !half.empty()) {
    throw ConfigError("TLS needs all three files: there is " + half,
                      "name the authorities' certificates, this worker's certificate and its key, as PEM files");
  }
  WorldGuard& guard = plan.guard;
  guard = {.secret = std::string(value_of(environment, kSecrets[0])),
           .secret_file = std::string(value_of(environment, kSecrets[1])),
           .tls_authorities = std::string(value_of(environment, kTls[0])),
           .tls_certificate = std::string(value_of(environment, kTls[1])),
           .tls_key = std::string(value_of(environment, kTls[2])),
           .listen = std::string(value_of(environment, "HEADRACE_WORLD_LISTEN"))};
  if (!guard.secret.empty() && !guard.secret_file.empty()) {
    throw ConfigError("HEADRACE_WORLD_SECRET and HEADRACE_WORLD_SECRET_FILE are both set", "unset one of them");
  }
  const auto add = [&](const char* name, bool set, const char* value, const char* from) {
    plan.facts.push_back(
        {.name = name, .value = set ? value : "none", .from = set ? from : "no variable names one"});
  };
  add("secret", guard.has_secret(), "set", guard.secret.empty() ? kSecrets[1] : kSecrets[0]);
  add("TLS", guard.has_tls(), "set", "HEADRACE_WORLD_TLS_CA, _CERTIFICATE, _KEY");
  if (!guard.listen.empty()) add("listens at", true, guard.listen.c_str(), "HEADRACE_WORLD_LISTEN");
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
  if (process->evaluates) {
    throw ConfigError(
        fmt::format("this process is TF_CONFIG's evaluator, which takes no part in the training of {}",
                    *process->workers == 1 ? "the worker" : "the workers"),
        "start none: the workers validate together; or let it evaluate their checkpoints standalone");
  }
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
    require_place_on_host(plan, *place);
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
  if (plan.launcher.empty()) {
    refuse_half_a_launch(environment);
    return plan;
  }
  const Address coordinator = coordinator_of(plan, environment);
  if (coordinator.value.empty()) {
    throw ConfigError(
        fmt::format("{} does not say where worker 0 is", plan.launcher),
        "set HEADRACE_COORDINATOR=HOST:PORT, the same for all workers: worker 0's host and a free port "
        "there");
  }
  check_address(coordinator);
  plan.coordinator = coordinator.value;
  plan.facts.push_back({.name = "coordinator", .value = coordinator.value, .from = coordinator.from});
  plan_transport(plan, transport, environment);
  plan_guard(plan, environment);
  return plan;
}

WorkerPlan plan_workers() { return plan_workers(std::getenv); }

}  // namespace headrace
