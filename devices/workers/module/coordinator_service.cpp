#include "headrace/devices/workers/module/coordinator_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace headrace {

// One worker's stream of beats. Deletes itself when gRPC is done with it.
class WatchedWorker final : public grpc::ServerBidiReactor<workers::Beat, workers::Failure> {
 public:
  WatchedWorker(CoordinatorService& service, std::string peer) : service_(service), peer_(std::move(peer)) {
    StartRead(&beat_);
  }

  int rank() const noexcept { return rank_; }

  // REQUIRES: the service's mutex; at most one call.
  void tell(const workers::Failure& failure) {
    failure_ = failure;
    StartWrite(&failure_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      service_.ended(*this);
      Finish(grpc::Status::OK);
      return;
    }
    rank_ = beat_.rank();
    if (!service_.beat(*this, beat_)) {
      rank_ = -1;
      Finish(service_.turn_away(peer_));
      return;
    }
    StartRead(&beat_);
  }
  void OnDone() override { delete this; }

 private:
  CoordinatorService& service_;
  const std::string peer_;
  workers::Beat beat_;
  workers::Failure failure_;
  int rank_ = -1;  // until the first beat
};

namespace {

// A worker beats four times a second: one that has missed several is stopped or disconnected.
constexpr auto kSilent = std::chrono::milliseconds(1200);

std::string name_of_gather(const std::string& what) {
  return what.empty() ? "all-gather" : fmt::format("all-gather ({})", what);
}

constexpr const char* kSameCalls =
    "let all workers make the same calls: fit(), evaluate() and predict() are calls of all, and only what needs "
    "no "
    "other worker is the chief's alone";

}  // namespace

std::string host_of_peer(const std::string& peer) {
  const std::size_t begin = peer.find(':') + 1, end = peer.rfind(':');
  std::string host = peer.substr(begin, end - begin);
  for (const char* bracket : {"%5B", "%5D", "[", "]"}) {
    if (const std::size_t at = host.find(bracket); at != std::string::npos) {
      host.erase(at, std::string_view(bracket).size());
    }
  }
  return host;
}

CoordinatorService::CoordinatorService(int world, std::string build, std::chrono::milliseconds max_silence,
                                       std::string secret)
    : world_(world),
      build_(std::move(build)),
      doorkeeper_(std::move(secret)),
      max_silence_(max_silence),
      timer_([this] { watch_the_clock(); }) {}

CoordinatorService::~CoordinatorService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  timer_.join();
}

void CoordinatorService::wait_until_refused(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return refused_ >= world_; });
}

grpc::Status CoordinatorService::turn_away(const std::string& peer) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = !std::exchange(turned_away_, true);
  }
  if (first) {
    fmt::print(stderr, "headrace: warning: a caller from {} without the world's secret was turned away\n",
               host_of_peer(peer));
    std::fflush(stderr);
  }
  return {grpc::StatusCode::UNAUTHENTICATED, "the caller did not prove that it knows the world's secret"};
}

grpc::ServerUnaryReactor* CoordinatorService::Greet(grpc::CallbackServerContext* context,
                                                    const workers::Greeting* greeting, workers::Welcome* welcome) {
  *welcome = doorkeeper_.welcome(*greeting);
  if (doorkeeper_.guards() && greeting->nonce().empty()) turn_away(context->peer());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::Exchange(grpc::CallbackServerContext* context,
                                                       const workers::ExchangeRequest* request,
                                                       workers::ExchangeReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!doorkeeper_.admits("exchange", *request)) {
    reactor->Finish(turn_away(context->peer()));
    return reactor;
  }
  const std::string host = host_of_peer(context->peer());
  reply->set_seen_as(host);
  const Caller caller{.reactor = reactor, .reply = reply, .rank = request->rank()};
  std::vector<Caller> answered;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<Refusal> refusal = refusal_ ? refusal_ : why_refused(*request, host);
    if (refusal) {
      refuse(*refusal, caller, answered);
    } else if (failure_) {
      *reply->mutable_failure() = *failure_;
      answered.push_back(caller);
    } else {
      meet(caller, *request, answered);
    }
  }
  changed_.notify_all();
  finish(answered);
  return reactor;
}

std::optional<CoordinatorService::Refusal> CoordinatorService::why_refused(const workers::ExchangeRequest& request,
                                                                           const std::string& host) const {
  constexpr const char* kOneLauncher = "start all workers by one launcher, each once";
  const int rank = request.rank();
  if (request.workers() != world_) {
    return Refusal{fmt::format("worker {} counts {} workers, worker 0 counts {}", rank, request.workers(), world_),
                   kOneLauncher};
  }
  if (rank < 0 || rank >= world_) {
    return Refusal{fmt::format("there is no worker {} in a world of {}", rank, world_), kOneLauncher};
  }
  const bool introduces = request.key() == kIntroduction;
  const auto meeting = meetings_.find(request.key());
  if ((introduces && complete_) || (meeting != meetings_.end() && meeting->second.values.contains(rank))) {
    return Refusal{fmt::format("two processes say that they are worker {}", rank), kOneLauncher};
  }
  if (introduces && request.build() != build_) {
    return Refusal{fmt::format("worker {} ({}) runs {}, worker 0 runs {}", rank, host, request.build(), build_),
                   "install one build of Headrace on all hosts"};
  }
  return std::nullopt;
}

void CoordinatorService::refuse(const Refusal& refusal, const Caller& caller, std::vector<Caller>& answered) {
  const std::size_t before = answered.size();
  answered.push_back(caller);
  if (!complete_) {
    refusal_ = refusal;
    for (auto& [key, meeting] : meetings_) {
      answered.insert(answered.end(), meeting.callers.begin(), meeting.callers.end());
    }
    meetings_.clear();
  }
  for (std::size_t i = before; i < answered.size(); ++i) {
    answered[i].reply->set_refusal(refusal.reason);
    answered[i].reply->set_hint(refusal.hint);
    ++refused_;
  }
}

void CoordinatorService::meet(const Caller& caller, const workers::ExchangeRequest& request,
                              std::vector<Caller>& answered) {
  Meeting& meeting = meetings_[request.key()];
  if (!meeting.values.empty() && meeting.what != request.what()) {
    const int other = meeting.values.begin()->first;
    const std::string theirs = fmt::format("{} of worker {}", name_of_gather(meeting.what), other);
    const std::string ours = fmt::format("{} of worker {}", name_of_gather(request.what()), request.rank());
    meeting.callers.push_back(caller);
    fail_different(other < request.rank() ? theirs + ", " + ours : ours + ", " + theirs, answered);
    return;
  }
  meeting.what = request.what();
  const Time deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.timeout_ms());
  if (meeting.callers.empty() || deadline < meeting.deadline) meeting.deadline = deadline;
  meeting.callers.push_back(caller);
  meeting.values[request.rank()] = request.value();
  if (request.key() == kGoodbye) {
    Life& life = lives_[request.rank()];
    life.signed_off = true;
    life.calls = request.calls();
    life.call.clear();
    for (int rank = 0; rank < world_; ++rank) compare_calls(rank, answered);
  } else {
    fail_if_one_has_left(request.rank(), request.calls(), answered);
  }
  if (failure_ || static_cast<int>(meeting.values.size()) < world_) return;
  if (request.key() == kIntroduction) complete_ = true;
  answer_all(meeting, answered);
  meetings_.erase(request.key());
}

void CoordinatorService::answer_all(Meeting& meeting, std::vector<Caller>& answered) const {
  for (const Caller& caller : meeting.callers) {
    if (static_cast<int>(meeting.values.size()) == world_) {
      for (const auto& [rank, value] : meeting.values) caller.reply->add_values(value);
    } else {
      for (int rank = 0; rank < world_; ++rank) {
        if (!meeting.values.contains(rank)) caller.reply->add_missing(rank);
      }
      if (failure_) *caller.reply->mutable_failure() = *failure_;
    }
    answered.push_back(caller);
  }
  meeting.callers.clear();
}

void CoordinatorService::finish(const std::vector<Caller>& answered) {
  for (const Caller& caller : answered) caller.reactor->Finish(grpc::Status::OK);
}

grpc::ServerBidiReactor<workers::Beat, workers::Failure>* CoordinatorService::Watch(
    grpc::CallbackServerContext* context) {
  return new WatchedWorker(*this, context->peer());
}

bool CoordinatorService::beat(WatchedWorker& from, const workers::Beat& beat) {
  if (!doorkeeper_.admits("beat", beat)) return false;
  std::vector<Caller> answered;
  {
    const std::lock_guard lock(mutex_);
    if (beat.rank() < 0 || beat.rank() >= world_) return true;  // its introduction is refused
    Life& life = lives_[beat.rank()];
    if (life.watch != nullptr && life.watch != &from) return true;  // so is that of a second one
    const bool first = life.watch == nullptr;
    life = {.watch = &from,
            .last_beat = std::chrono::steady_clock::now(),
            .calls = beat.calls(),
            .moment = beat.moment(),
            .call = beat.call(),
            .leaving = life.leaving || beat.leaving(),
            .signed_off = life.signed_off};
    if (first && failure_) from.tell(*failure_);
    if (!beat.failure().empty()) {
      workers::Failure failure;
      failure.set_rank(beat.rank());
      failure.set_reason("failed: " + beat.failure());
      fail(failure, answered);
    }
    compare_calls(beat.rank(), answered);
  }
  finish(answered);
  return true;
}

void CoordinatorService::fail_if_one_has_left(int rank, std::int64_t calls, std::vector<Caller>& answered) {
  for (const auto& [other, life] : lives_) {
    if (other == rank || !life.signed_off || life.calls >= calls) continue;
    workers::Failure failure;
    failure.set_rank(other);
    failure.set_reason("has left");
    failure.set_hint(kSameCalls);
    return fail(failure, answered);
  }
}

void CoordinatorService::fail_different(const std::string& calls, std::vector<Caller>& answered) {
  workers::Failure failure;
  failure.set_rank(-1);
  failure.set_differ(true);
  failure.set_reason("the workers are in different calls: " + calls);
  failure.set_hint(kSameCalls);
  fail(failure, answered);
}

void CoordinatorService::compare_calls(int rank, std::vector<Caller>& answered) {
  const auto mine = lives_.find(rank);
  if (mine == lives_.end() || mine->second.call.empty() || failure_) return;
  const Life& life = mine->second;
  fail_if_one_has_left(rank, life.calls, answered);
  for (const auto& [other, theirs] : lives_) {
    if (theirs.calls != life.calls || theirs.call.empty() || theirs.call == life.call) continue;
    return fail_different(fmt::format("{} of worker {}, {} of worker {}", life.call, rank, theirs.call, other),
                          answered);
  }
}

void CoordinatorService::ended(const WatchedWorker& from) {
  std::vector<Caller> answered;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lives_.find(from.rank());
    if (found == lives_.end() || found->second.watch != &from) return;
    found->second.watch = nullptr;
    const auto are_off = std::ranges::count_if(lives_, [](const auto& each) { return each.second.signed_off; });
    if (!stopping_ && (found->second.signed_off ? are_off < world_ : !found->second.leaving)) {
      workers::Failure failure;
      failure.set_rank(from.rank());
      failure.set_reason(found->second.signed_off ? "has left" : "was lost");
      if (found->second.signed_off) failure.set_hint(kSameCalls);
      fail(failure, answered);
    }
  }
  finish(answered);
}

void CoordinatorService::fail(const workers::Failure& failure, std::vector<Caller>& answered) {
  if (failure_) return;
  failure_ = failure;
  if (const auto life = lives_.find(failure.rank()); life != lives_.end()) {
    failure_->set_moment(life->second.moment);
    failure_->set_calls(life->second.calls);
  }
  for (auto& [rank, life] : lives_) {
    if (life.watch != nullptr) life.watch->tell(*failure_);
  }
  for (auto& [key, meeting] : meetings_) answer_all(meeting, answered);
  meetings_.clear();
}

grpc::ServerUnaryReactor* CoordinatorService::FindLate(grpc::CallbackServerContext* context,
                                                       const workers::LateRequest* request,
                                                       workers::Failure* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!doorkeeper_.admits("late", *request)) {
    reactor->Finish(turn_away(context->peer()));
    return reactor;
  }
  std::vector<Caller> answered;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<workers::Failure> late = failure_ ? std::nullopt : find_late(*request);
    if (late) fail(*late, answered);
    reply->set_rank(-1);
    if (failure_) *reply = *failure_;
  }
  finish(answered);
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

// Prefers a worker that has left to a silent one, and a silent one to one that is behind, because waiting for
// either makes others fall behind, too.
std::optional<workers::Failure> CoordinatorService::find_late(const workers::LateRequest& request) const {
  const Time now = std::chrono::steady_clock::now();
  std::optional<int> gone, silent, behind;
  std::int64_t fewest = request.calls();
  for (const auto& [rank, life] : lives_) {
    if (rank == request.rank()) continue;
    if (life.watch == nullptr && !gone) gone = rank;
    if (now - life.last_beat > kSilent && !silent) silent = rank;
    if (life.calls < fewest) {
      behind = rank;
      fewest = life.calls;
    }
  }
  const std::optional<int> late = gone ? gone : silent ? silent : behind;
  if (!late) return std::nullopt;
  workers::Failure failure;
  failure.set_rank(*late);
  failure.set_reason(gone ? "has left" : "is late");
  return failure;
}

// Others may wait for it where no call has a deadline, as on a GPU.
void CoordinatorService::fail_silent_worker(Time now, std::vector<Caller>& answered) {
  for (const auto& [rank, life] : lives_) {
    if (life.watch == nullptr || now - life.last_beat <= max_silence_) continue;
    workers::Failure failure;
    failure.set_rank(rank);
    failure.set_reason("is late");
    return fail(failure, answered);
  }
}

void CoordinatorService::watch_the_clock() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::vector<Caller> answered;
    const Time now = std::chrono::steady_clock::now();
    fail_silent_worker(now, answered);
    Time next = now + std::chrono::seconds(1);
    for (auto meeting = meetings_.begin(); meeting != meetings_.end();) {
      if (meeting->second.deadline > now) {
        next = std::min(next, meeting->second.deadline);
        ++meeting;
        continue;
      }
      answer_all(meeting->second, answered);
      meeting = meetings_.erase(meeting);
    }
    if (!answered.empty()) {
      lock.unlock();
      finish(answered);
      lock.lock();
      continue;
    }
    changed_.wait_until(lock, next);
  }
  std::vector<Caller> answered;
  for (auto& [key, meeting] : meetings_) answer_all(meeting, answered);
  meetings_.clear();
  lock.unlock();
  finish(answered);
}

}  // namespace headrace
