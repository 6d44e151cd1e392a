// How a worker joins: introduction, address, mesh.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/workers/module/joined_workers.h"
#include "headrace/devices/workers/module/listening.h"
#include "headrace/devices/workers/module/meshes.h"

namespace headrace {
namespace {

constexpr auto kGreetAgain = std::chrono::milliseconds(100);

std::string host_name() {
  std::string name(256, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0) return "an unknown host";
  return name.substr(0, name.find('\0'));
}

bool is_ipv6(const std::string& address) { return address.find(':') != std::string::npos; }

// A host may become known later only where pods are started together with their names.
bool may_become_known(const WorkerPlan& plan) {
  if (plan.launcher == "Kubernetes") return true;
  const char* in_kubernetes = std::getenv("KUBERNETES_SERVICE_HOST");
  return in_kubernetes != nullptr && *in_kubernetes != '\0';
}

std::vector<MpiOffer> offers_of(const std::vector<std::string>& texts) {
  std::vector<MpiOffer> offers;
  for (const std::string& text : texts) offers.push_back(MpiOffer::from_json(text));
  return offers;
}

}  // namespace

void JoinedWorkers::join(const std::string& build) {
  if (plan_.rank == 0) serve(build);
  greet();
  watch_coordinator();
  const FoundMpi mpi = plan_.transport == WorkerTransportKind::kGloo ? FoundMpi{} : find_mpi_module();
  const Introduced introduced = introduce(build, offer_of(plan_, mpi));
  phase_ = Phase::kConnecting;
  connect(introduced, mpi);
  phase_ = Phase::kJoined;
}

void JoinedWorkers::serve(const std::string& build) {
  const auto limit = static_cast<std::int64_t>(options_.call_timeout_seconds * 1000);
  service_ = std::make_unique<CoordinatorService>(plan_.workers, build, std::chrono::milliseconds(limit), secret_);
  server_ = listen(plan_, *service_);
}

void JoinedWorkers::greet() {
  const auto end = after_seconds(options_.start_timeout_seconds);
  for (;;) {
    stub_ = workers::Coordinator::NewStub(call_worker_0(plan_));  // an old channel tries again only after seconds
    grpc::ClientContext context;
    context.set_deadline(end);
    workers::Welcome welcome;
    const grpc::Status status = stub_->Greet(&context, proof_.greeting(plan_.rank), &welcome);
    if (status.ok()) return proof_.welcome(welcome);
    const std::string& said = status.error_message();
    if (said.find("DNS resolution failed") != std::string::npos && !may_become_known(plan_)) {
      throw ConfigError(fmt::format("the host of worker 0 at {} is not known: {}", plan_.coordinator, said),
                        "name a host that this one can find, or its address in numbers, in HEADRACE_COORDINATOR");
    }
    const bool wrong_peer =
        said.find("andshake") != std::string::npos || said.find("peer certificate") != std::string::npos;
    if (plan_.guard.has_tls() && wrong_peer) {
      throw ConfigError(
          fmt::format("worker 0 at {} cannot be called by TLS: {}", plan_.coordinator, said),
          "give all workers TLS, and worker 0 a certificate of one of the authorities, for that host");
    }
    if (std::chrono::system_clock::now() + kGreetAgain > end)
      throw_unreached(status, options_.start_timeout_seconds);
    std::this_thread::sleep_for(kGreetAgain);
  }
}

// The watch begins before the introduction, so that the coordinator notices whoever is lost from then on.
void JoinedWorkers::watch_coordinator() {
  watch_ = std::make_unique<Watch>(*stub_, proof_, plan_.rank, [this] { end_waiting(); });
}

JoinedWorkers::Introduced JoinedWorkers::introduce(const std::string& build, const MpiOffer& offer) {
  const nlohmann::json mine{{"host", host_name()}, {"process", getpid()}, {"mpi", offer.to_json()}};
  workers::ExchangeRequest request;
  request.set_key(kIntroduction);
  request.set_value(mine.dump());
  request.set_build(build);
  const workers::ExchangeReply reply = exchange(std::move(request), options_.start_timeout_seconds);
  if (reply.missing_size() > 0) {
    throw WorkerLost(ErrorCode::kTimeout,
                     fmt::format("after {:g} s there {} no {}", options_.start_timeout_seconds,
                                 reply.missing_size() == 1 ? "is" : "are", list_missing(reply)),
                     fmt::format("worker 0 at {}", plan_.coordinator),
                     "see that each was started, and that it reaches worker 0");
  }
  Introduced introduced;
  for (const std::string& value : reply.values()) {
    const nlohmann::json said = nlohmann::json::parse(value);
    members_.push_back({.host = said["host"], .process = said["process"]});
    introduced.offers.push_back(MpiOffer::from_json(said["mpi"]));
  }
  introduced.seen_as = reply.seen_as();
  return introduced;
}

// Worker 0 and its neighbours reach the coordinator within their host: they take the address by which workers of
// other hosts reach it. If all are on one host, all take worker 0's, because "localhost" may mean ::1 to one and
// 127.0.0.1 to another.
std::string JoinedWorkers::find_address(const std::string& seen_as) {
  const nlohmann::json mine{{"own", seen_as}, {"coordinator", coordinator_address_}};
  std::vector<std::string> own;
  std::string within_the_coordinators_host;
  for (const std::string& value : gather("addresses", mine.dump())) {
    const nlohmann::json said = nlohmann::json::parse(value);
    own.push_back(said["own"]);
    if (!is_loopback(own.back())) within_the_coordinators_host = said["coordinator"];
  }
  if (within_the_coordinators_host.empty()) return own.front();
  for (std::string& address : own) {
    if (is_loopback(address)) address = within_the_coordinators_host;
  }
  const auto other =
      std::ranges::find_if(own, [&](const auto& each) { return is_ipv6(each) != is_ipv6(own.front()); });
  if (other != own.end()) {
    throw WorkersDiffer(fmt::format("worker 0 is at {} and worker {} at {}: all must use IPv4, or all IPv6",
                                    own.front(), other - own.begin(), *other),
                        "name worker 0's address in numbers in HEADRACE_COORDINATOR");
  }
  return own[static_cast<std::size_t>(plan_.rank)];
}

void JoinedWorkers::connect(const Introduced& introduced, const FoundMpi& mpi) {
  const Stopwatch waited;
  try {
    transport_ = choose_mesh(introduced.offers);
    if (transport_.value == "mpi") connect_mpi(*mpi.module);
    if (transport_.value == "gloo") connect_gloo(find_address(introduced.seen_as));
  } catch (const Error&) {  // it names the failed worker
    throw;
  } catch (const std::exception& error) {
    throw_failure(find_failure(waited.seconds() >= options_.call_timeout_seconds), error.what());
  }
}

// Chooses again once MPI says where each worker is.
void JoinedWorkers::connect_mpi(const MpiModule& module) {
  mpi_ = &module;
  const MpiPlace place = module.start(options_.call_timeout_seconds, ended_);
  transport_ = choose_mesh(offers_of(all_gather(offer_of(plan_, place).to_json(), "MPI's places")));
  if (transport_.value == "mpi") use(module.connect(options_.call_timeout_seconds, ended_));
}

void JoinedWorkers::connect_gloo(const std::string& address) {
  auto mesh = std::make_unique<GlooMesh>(plan_.rank, plan_.workers, address, options_.call_timeout_seconds);
  GlooMesh& gloo = *mesh;
  use(std::move(mesh));
  gloo.connect([this](std::string_view mine) { return all_gather(mine, {}); });
}

void JoinedWorkers::use(std::unique_ptr<Mesh> mesh) noexcept {
  mesh_ = std::move(mesh);
  abortable_ = mesh_.get();
  if (ended_) mesh_->abort();
}

// The module's entry point.

namespace {

class GrpcAndGloo final : public WorkerModule {
 public:
  std::unique_ptr<WorkerTransport> join(const WorkerPlan& plan, const WorkerOptions& options,
                                        const std::string& build) const override {
    return std::make_unique<JoinedWorkers>(plan, options, build);
  }
};

}  // namespace
}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::WorkerModule* headrace_workers(int abi_version) {
  static const headrace::GrpcAndGloo module;
  return abi_version == headrace::kWorkerAbiVersion ? &module : nullptr;
}
