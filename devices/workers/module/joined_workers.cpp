#include "headrace/devices/workers/module/joined_workers.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// How long a worker that lost a connection waits to be told which worker failed.
constexpr auto kTold = std::chrono::milliseconds(400);
constexpr auto kAnswered = std::chrono::milliseconds(500);  // a live coordinator answers at once
constexpr double kGoodbyeSeconds = 10;
// The time that the coordinator's answer may take beyond its waiting.
constexpr double kGraceSeconds = 2;

std::chrono::system_clock::time_point after(double seconds) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string host_name() {
  std::string name(256, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0) return "an unknown host";
  return name.substr(0, name.find('\0'));
}

WorkerInfo info_of(const std::string& introduction) {
  const nlohmann::json said = nlohmann::json::parse(introduction);
  return {.host = said["host"], .process = said["process"]};
}

bool is_loopback(const std::string& address) { return address == "::1" || address.starts_with("127."); }

bool is_ipv6(const std::string& address) { return address.find(':') != std::string::npos; }

constexpr const char* kRestart = "start all workers again: training goes on from the newest checkpoint";

}  // namespace

JoinedWorkers::JoinedWorkers(const WorkerPlan& plan, const WorkerOptions& options, const std::string& build)
    : plan_(plan), options_(options) {
  if (plan.rank == 0) serve();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  stub_ = workers::Coordinator::NewStub(
      grpc::CreateCustomChannel(plan.coordinator, grpc::InsecureChannelCredentials(), arguments));
  const std::string address = introduce(build);
  watch_ = std::make_unique<Watch>(*stub_, plan.rank, [this] { abort_mesh(); });
  run("connecting", [&] {
    mesh_ = std::make_unique<GlooMesh>(plan.rank, plan.workers, address, options.call_timeout_seconds,
                                       [&](std::string_view mine) { return all_gather(mine); });
  });
  abortable_ = mesh_.get();
  if (watch_->failure()) abort_mesh();
}

// All leave together, worker 0 last, because it serves the others. A worker that an error ends tells them.
JoinedWorkers::~JoinedWorkers() {
  if (std::uncaught_exceptions() > 0) {
    abort("an error ended its work");
  } else if (!watch_->failure()) {
    try {
      exchange("goodbye", {}, kGoodbyeSeconds);
    } catch (const std::exception&) {  // the failed worker was named
    }
  }
  watch_.reset();
  mesh_.reset();
  server_.reset();
}

void JoinedWorkers::ShutDownSoon::operator()(grpc::Server* server) const {
  server->Shutdown(after(kGraceSeconds));
  delete server;
}

void JoinedWorkers::serve() {
  const auto limit = static_cast<std::int64_t>(options_.call_timeout_seconds * 1000);
  service_ = std::make_unique<CoordinatorService>(plan_.workers, std::chrono::milliseconds(limit));
  const std::string port = plan_.coordinator.substr(plan_.coordinator.rfind(':') + 1);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  int bound = 0;
  builder.AddListeningPort("[::]:" + port, grpc::InsecureServerCredentials(), &bound);
  builder.RegisterService(service_.get());
  server_.reset(builder.BuildAndStart().release());
  if (server_ == nullptr || bound == 0) {
    throw ConfigError(
        fmt::format("worker 0 cannot listen on port {} for the other workers", port),
        "end the program that has it, or name another address in HEADRACE_COORDINATOR on all workers");
  }
}

workers::ExchangeReply JoinedWorkers::exchange(const std::string& key, std::string_view value,
                                               double timeout_seconds) {
  workers::ExchangeRequest request;
  request.set_key(key);
  request.set_rank(plan_.rank);
  request.set_workers(plan_.workers);
  request.set_value(std::string(value));
  request.set_timeout_ms(static_cast<std::int64_t>(timeout_seconds * 1000));
  workers::ExchangeReply reply;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(after(timeout_seconds + kGraceSeconds));
  const grpc::Status status = stub_->Exchange(&context, request, &reply);
  if (status.ok()) {
    coordinator_address_ = host_of_peer(context.peer());
    if (!reply.refusal().empty()) {
      throw ConfigError(reply.refusal(), "start all workers by one launcher, each once");
    }
    if (reply.failure().reason().empty()) return reply;
    throw_failure(reply.failure());
  }
  if (watch_) {
    if (const auto failure = watch_->wait_for_failure(kTold)) throw_failure(*failure);
  }
  throw DeviceError(ErrorCode::kTimeout,
                    fmt::format("worker {} reached no coordinator in {:g} s: {}", plan_.rank, timeout_seconds,
                                status.error_message()),
                    fmt::format("worker 0 at {}", plan_.coordinator),
                    "see that worker 0 was started and that its port is open to this host");
}

std::string JoinedWorkers::introduce(const std::string& build) {
  const std::string mine = nlohmann::json{{"host", host_name()}, {"process", getpid()}, {"build", build}}.dump();
  const workers::ExchangeReply reply = exchange("introduction", mine, options_.start_timeout_seconds);
  if (reply.missing_size() > 0) {
    throw DeviceError(ErrorCode::kTimeout,
                      fmt::format("after {:g} s there {} no {}", options_.start_timeout_seconds,
                                  reply.missing_size() == 1 ? "is" : "are", list_missing(reply)),
                      fmt::format("worker 0 at {}", plan_.coordinator),
                      "see that each was started, and that it reaches worker 0");
  }
  std::vector<std::string> builds;
  for (const std::string& value : reply.values()) {
    members_.push_back(info_of(value));
    builds.push_back(nlohmann::json::parse(value)["build"]);
  }
  compare_builds(builds);
  return find_address(reply.seen_as());
}

// Worker 0 and its neighbours reach the coordinator within their host: they take the address by which workers of
// other hosts reach it. If all are on one host, all take worker 0's, because "localhost" may mean ::1 to one and
// 127.0.0.1 to another.
std::string JoinedWorkers::find_address(const std::string& seen_as) {
  const nlohmann::json mine{{"own", seen_as}, {"coordinator", coordinator_address_}};
  const workers::ExchangeReply reply = exchange("addresses", mine.dump(), options_.call_timeout_seconds);
  std::vector<std::string> own;
  std::string within_the_coordinators_host;
  for (const std::string& value : reply.values()) {
    const nlohmann::json said = nlohmann::json::parse(value);
    own.push_back(said["own"]);
    if (!is_loopback(own.back())) within_the_coordinators_host = said["coordinator"];
  }
  if (within_the_coordinators_host.empty()) return own.empty() ? seen_as : own.front();
  for (std::string& address : own) {
    if (is_loopback(address)) address = within_the_coordinators_host;
  }
  const auto other =
      std::ranges::find_if(own, [&](const auto& each) { return is_ipv6(each) != is_ipv6(own.front()); });
  if (other != own.end()) {
    throw ConfigError(fmt::format("worker 0 is at {} and worker {} at {}: all must use IPv4, or all IPv6",
                                  own.front(), other - own.begin(), *other),
                      "name worker 0's address in numbers in HEADRACE_COORDINATOR");
  }
  return own[static_cast<std::size_t>(plan_.rank)];
}

void JoinedWorkers::compare_builds(const std::vector<std::string>& builds) const {
  const auto other = std::ranges::find_if(builds, [&](const std::string& each) { return each != builds.front(); });
  if (other == builds.end()) return;
  const int rank = static_cast<int>(other - builds.begin());
  throw ConfigError(fmt::format("{} runs {}, worker 0 runs {}", name_of(rank), *other, builds.front()),
                    "install one build of Headrace on all hosts");
}

// Returns "worker 2 (expected at node-c:2222), worker 5".
std::string JoinedWorkers::list_missing(const workers::ExchangeReply& reply) const {
  std::string names;
  for (const int rank : reply.missing()) {
    const auto place = static_cast<std::size_t>(rank);
    const bool listed = place < plan_.addresses.size();
    names += fmt::format("{}worker {}{}", names.empty() ? "" : ", ", rank,
                         listed ? fmt::format(" (expected at {})", plan_.addresses[place]) : "");
  }
  return names;
}

std::vector<std::string> JoinedWorkers::all_gather(std::string_view mine) {
  begin(fmt::format("all-gather {}", watch_->calls() + 1));
  const workers::ExchangeReply reply =
      exchange(fmt::format("gather {}", ++gathers_), mine, options_.call_timeout_seconds);
  if (reply.missing_size() > 0) {
    throw DeviceError(ErrorCode::kTimeout,
                      fmt::format("{} did not come to {} within {:g} s", list_missing(reply), call_,
                                  options_.call_timeout_seconds),
                      name_of(plan_.rank), kRestart);
  }
  return {reply.values().begin(), reply.values().end()};
}

void JoinedWorkers::all_reduce_sum(float* values, std::size_t count) {
  run(fmt::format("all-reduce {} of {} bytes", watch_->calls() + 1, count * sizeof(float)),
      [&] { mesh_->all_reduce_sum(values, count); });
}

void JoinedWorkers::broadcast(std::byte* bytes, std::size_t count, int root) {
  run(fmt::format("broadcast {} of {} bytes", watch_->calls() + 1, count),
      [&] { mesh_->broadcast(bytes, count, root); });
}

void JoinedWorkers::abort(const std::string& reason) noexcept {
  try {
    watch_->report(reason);
  } catch (const std::exception&) {  // no memory: the others notice when this process ends
  }
  abort_mesh();
}

void JoinedWorkers::abort_mesh() noexcept {
  if (GlooMesh* mesh = abortable_.load()) mesh->abort();
}

void JoinedWorkers::begin(const std::string& what) {
  call_ = what;
  require_no_failure();
  watch_->begin_call();
}

void JoinedWorkers::require_no_failure() const {
  if (const auto failure = watch_->failure()) throw_failure(*failure);
}

void JoinedWorkers::run(const std::string& what, const std::function<void()>& call) {
  begin(what);
  try {
    call();
    return;
  } catch (const Error&) {  // from the coordinator: it names the failed worker
    throw;
  } catch (const std::exception& error) {  // from Gloo: a connection was closed, or nothing was sent for too long
    throw_failure(find_failure(), error.what());
  }
}

workers::Failure JoinedWorkers::find_failure() {
  if (const auto told = watch_->wait_for_failure(kTold)) return *told;
  workers::LateRequest request;
  request.set_rank(plan_.rank);
  request.set_calls(watch_->calls());
  workers::Failure late;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswered);
  if (!stub_->FindLate(&context, request, &late).ok()) {
    late.set_rank(0);
    late.set_reason("does not answer");
  }
  return late;
}

void JoinedWorkers::throw_failure(const workers::Failure& failure, const std::string& cause) const {
  if (failure.rank() < 0) {
    throw DeviceError(ErrorCode::kCancelled,
                      fmt::format("a connection to another worker was lost in {}: {}", call_, cause),
                      name_of(plan_.rank), kRestart);
  }
  const bool late = failure.reason() == "is late";
  throw DeviceError(late ? ErrorCode::kTimeout : ErrorCode::kCancelled,
                    describe(failure) + (call_.empty() ? "" : ", while this worker was in " + call_),
                    name_of(plan_.rank), kRestart);
}

std::string JoinedWorkers::failure() const {
  const auto failure = watch_->failure();
  return failure ? describe(*failure) : std::string();
}

std::string JoinedWorkers::describe(const workers::Failure& failure) const {
  const std::string where =
      failure.moment().empty() ? "" : fmt::format(" (last heard of at {})", failure.moment());
  return fmt::format("{} {}{}", name_of(failure.rank()), failure.reason(), where);
}

std::string JoinedWorkers::name_of(int rank) const {
  const auto place = static_cast<std::size_t>(rank);
  return place < members_.size() ? members_[place].to_string(rank) : fmt::format("worker {}", rank);
}

}  // namespace headrace
