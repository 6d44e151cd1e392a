#include "headrace/devices/workers/module/joined_workers.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <exception>
#include <utility>

#include "headrace/devices/workers/module/listening.h"

namespace headrace {
namespace {

// How long a worker that lost a connection waits to be told which worker failed.
constexpr auto kTold = std::chrono::milliseconds(400);
constexpr double kAnswerSeconds = .5;  // a live coordinator answers at once
constexpr double kGoodbyeSeconds = 10;
// How long worker 0 serves others once it leaves: until they have left, or been told of a failure or refusal.
constexpr double kServeLeavingSeconds = 2, kServeFailedSeconds = .3;
constexpr auto kServeRefused = std::chrono::seconds(1);
// The time that the coordinator's answer may take beyond its waiting.
constexpr double kGraceSeconds = .8;

constexpr const char* kRestart = "start all workers again: training goes on from the newest checkpoint";

workers::Failure coordinator_is_silent() {
  workers::Failure failure;
  failure.set_rank(0);
  failure.set_reason("does not answer");
  return failure;
}

}  // namespace

JoinedWorkers::JoinedWorkers(const WorkerPlan& plan, const WorkerOptions& options, const std::string& build)
    : plan_(plan), options_(options), secret_(read_secret(plan.guard)), proof_(secret_) {
  try {
    join(build);
  } catch (const std::exception& error) {
    if (phase_ == Phase::kConnecting) fail(std::string("it could not connect: ") + error.what());
    leave();
    throw;
  }
}

// All leave together, worker 0 last, because it serves the others. A worker that an error ends tells them.
JoinedWorkers::~JoinedWorkers() {
  if (std::uncaught_exceptions() > 0 && !signed_off_) {
    fail("an error ended its work");
  } else {
    sign_off();
  }
  leave();
}

void JoinedWorkers::sign_off() noexcept {
  if (signed_off_.exchange(true)) return;
  phase_ = Phase::kLeaving;
  if (watch_->failure()) return;
  try {
    workers::ExchangeRequest request;
    request.set_key(kGoodbye);
    exchange(std::move(request), kGoodbyeSeconds);
  } catch (const std::exception&) {  // the values are complete: this worker need not say who failed at the end
    end_waiting();
  }
}

void JoinedWorkers::leave() noexcept {
  watch_.reset();
  abortable_ = nullptr;
  mesh_.reset();
  if (server_ == nullptr) return;
  if (refused_) service_->wait_until_refused(kServeRefused);
  server_->Shutdown(after_seconds(ended_ || refused_ ? kServeFailedSeconds : kServeLeavingSeconds));
  server_.reset();
}

workers::ExchangeReply JoinedWorkers::exchange(workers::ExchangeRequest request, double timeout_seconds) {
  request.set_rank(plan_.rank);
  request.set_workers(plan_.workers);
  request.set_timeout_ms(static_cast<std::int64_t>(timeout_seconds * 1000));
  request.set_calls(watch_->calls());
  proof_.sign("exchange", request);
  workers::ExchangeReply reply;
  grpc::ClientContext context;
  context.set_wait_for_ready(phase_ == Phase::kIntroducing);  // later a coordinator that is gone stays gone
  context.set_deadline(after_seconds(timeout_seconds + kGraceSeconds));
  const grpc::Status status = stub_->Exchange(&context, request, &reply);
  if (!status.ok()) throw_unanswered(status, timeout_seconds);
  coordinator_address_ = host_of_peer(context.peer());
  if (!reply.refusal().empty()) {
    refused_ = true;
    throw WorkersDiffer(reply.refusal(), reply.hint());
  }
  if (!reply.failure().reason().empty()) throw_failure(reply.failure());
  return reply;
}

void JoinedWorkers::throw_unanswered(const grpc::Status& status, double timeout_seconds) {
  const bool overdue = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (const auto told = overdue ? watch_->failure() : watch_->wait_for_failure(kTold)) throw_failure(*told);
  if (phase_ != Phase::kIntroducing) {
    watch_->note(coordinator_is_silent());
    throw_failure(coordinator_is_silent());
  }
  throw_unreached(status, timeout_seconds);
}

void JoinedWorkers::throw_unreached(const grpc::Status& status, double timeout_seconds) const {
  throw WorkerLost(ErrorCode::kTimeout,
                   fmt::format("worker {} reached no coordinator in {:g} s: {}", plan_.rank, timeout_seconds,
                               status.error_message()),
                   fmt::format("worker 0 at {}", plan_.coordinator),
                   "see that worker 0 was started and that its port is open to this host");
}

std::vector<std::string> JoinedWorkers::gather(const std::string& key, std::string_view value,
                                               std::string_view what) {
  workers::ExchangeRequest request;
  request.set_key(key);
  request.set_value(std::string(value));
  request.set_what(std::string(what));
  const workers::ExchangeReply reply = exchange(std::move(request), options_.call_timeout_seconds);
  if (reply.missing_size() > 0) {
    throw_error(ErrorCode::kTimeout, fmt::format("{} did not come to {} within {:g} s", list_missing(reply),
                                                 current_call(), options_.call_timeout_seconds));
  }
  return {reply.values().begin(), reply.values().end()};
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

std::vector<std::string> JoinedWorkers::all_gather(std::string_view mine, std::string_view what) {
  std::vector<std::string> all;
  const std::string name = what.empty() ? "all-gather" : fmt::format("all-gather ({})", what);
  run(CallKind::kAllGather, mine.size(), name,
      [&] { all = gather(fmt::format("gather {}", ++gathers_), mine, what); });
  return all;
}

void JoinedWorkers::all_reduce_sum(float* values, std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  run(CallKind::kAllReduce, bytes, fmt::format("all-reduce of {} bytes", bytes),
      [&] { mesh_->all_reduce_sum(values, count); });
}

void JoinedWorkers::broadcast(std::byte* bytes, std::size_t count, int root) {
  run(CallKind::kBroadcast, count, fmt::format("broadcast of {} bytes", count),
      [&] { mesh_->broadcast(bytes, count, root); });
}

void JoinedWorkers::set_moment(std::string moment) {
  ring_.set_moment(moment);
  watch_->set_moment(std::move(moment));
}

void JoinedWorkers::abort(const std::string& reason) noexcept {
  fail(reason);
  dump_calls(reason);
}

void JoinedWorkers::fail(const std::string& reason) noexcept {
  try {
    watch_->report(reason);
  } catch (const std::exception&) {  // no memory: the others notice when this process ends
  }
  end_waiting();
}

void JoinedWorkers::end_waiting() noexcept {
  ended_ = true;
  if (const MpiModule* mpi = mpi_.load()) mpi->abandon();
  if (Mesh* mesh = abortable_.load()) mesh->abort();
}

void JoinedWorkers::require_no_failure() {
  if (const auto failure = watch_->failure()) throw_failure(*failure);
}

template <typename Call>
void JoinedWorkers::run(CallKind kind, std::size_t bytes, std::string name, const Call& call) {
  if (signed_off_) throw ConfigError("this worker has signed off", "make no calls after sign_off()");
  require_no_failure();
  call_ = name;
  watch_->begin_call(std::move(name));
  ring_.begin(kind, bytes);
  try {
    call();
    ring_.end(CallState::kDone);
    watch_->end_call();
  } catch (const Error&) {  // from the coordinator: it names the failed worker
    throw;
  } catch (const std::exception& error) {  // from the mesh: a worker was lost, or sent nothing for too long
    throw_failure(find_failure(ring_.running_seconds() >= options_.call_timeout_seconds), error.what());
  }
}

workers::Failure JoinedWorkers::find_failure(bool overdue) {
  if (const auto told = overdue ? watch_->failure() : watch_->wait_for_failure(kTold)) return *told;
  workers::LateRequest request;
  request.set_rank(plan_.rank);
  request.set_calls(watch_->calls());
  proof_.sign("late", request);
  workers::Failure late;
  grpc::ClientContext context;
  context.set_deadline(after_seconds(kAnswerSeconds));
  if (stub_->FindLate(&context, request, &late).ok()) return late;
  watch_->note(coordinator_is_silent());
  return coordinator_is_silent();
}

void JoinedWorkers::throw_failure(const workers::Failure& failure, const std::string& cause) {
  const std::string call = current_call();
  if (failure.differ()) {
    ring_.end(CallState::kFailed);
    throw WorkersDiffer(failure.reason(), failure.hint());
  }
  if (failure.rank() < 0) {
    throw_error(ErrorCode::kCancelled,
                fmt::format("a connection to another worker was lost in {}: {}", call, cause));
  }
  throw_error(failure.reason() == "is late" ? ErrorCode::kTimeout : ErrorCode::kCancelled,
              describe(failure) + (call.empty() ? "" : ", while this worker was in " + call), failure.hint());
}

void JoinedWorkers::throw_error(ErrorCode code, const std::string& message, const std::string& hint) {
  ring_.end(CallState::kFailed);
  const std::string calls = dump_calls(message), what = hint.empty() ? kRestart : hint;
  throw WorkerLost(code, message, name_of(plan_.rank), calls.empty() ? what : what + "; " + calls);
}

std::string JoinedWorkers::current_call() const {
  if (phase_ == Phase::kIntroducing) return {};
  if (phase_ == Phase::kConnecting) return "connecting";
  const std::size_t named = call_.find(" (");
  return ring_.last() + (named == std::string::npos ? "" : call_.substr(named));
}

std::string JoinedWorkers::dump_calls(const std::string& reason) noexcept {
  try {
    const std::lock_guard lock(dump_mutex_);
    if (phase_ == Phase::kJoined && dumped_.empty()) {
      dumped_ =
          write_calls(ring_, plan_.rank,
                      fmt::format("# The last collective calls of {}, one of {} workers, values over {}\n# {}\n",
                                  name_of(plan_.rank), plan_.workers, transport_.value, reason));
    }
    return dumped_;
  } catch (const std::exception&) {  // no memory
    return {};
  }
}

std::string JoinedWorkers::failure() const {
  const auto failure = watch_->failure();
  return failure ? describe(*failure) : std::string();
}

std::string JoinedWorkers::describe(const workers::Failure& failure) const {
  if (failure.differ()) return failure.reason();
  const std::string where =
      failure.moment().empty() ? "" : fmt::format(" (last heard of at {})", failure.moment());
  return fmt::format("{} {}{}", name_of(failure.rank()), failure.reason(), where);
}

std::string JoinedWorkers::name_of(int rank) const {
  const auto place = static_cast<std::size_t>(rank);
  return place < members_.size() ? members_[place].to_string(rank) : fmt::format("worker {}", rank);
}

}  // namespace headrace
