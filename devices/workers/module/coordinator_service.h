// The coordinator: the service of worker 0, and how workers watch one another.
#pragma once

#include <coordinator.grpc.pb.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/workers/module/world_secret.h"

namespace headrace {

// Worker 0's side: gathers the workers' values and watches over their lives.

class WatchedWorker;

// Returns the host of an address in gRPC's notation: "10.0.0.5" for "ipv4:10.0.0.5:4711", "::1" for
// "ipv6:%5B::1%5D:4711".
std::string host_of_peer(const std::string& peer);

// The key of the first exchange, by which the world becomes complete.
inline constexpr const char* kIntroduction = "introduction";
// That of the last one.
inline constexpr const char* kGoodbye = "goodbye";

// Thread-safe: gRPC's threads call it. No call blocks one of them. Whoever does not fit into the world ends it for
// all while it is incomplete; a complete one refuses that caller alone.
class CoordinatorService final : public workers::Coordinator::CallbackService {
 public:
  // `build`: worker 0's program. A worker that has not beaten for `max_silence` is late. `secret`: see Doorkeeper.
  CoordinatorService(int world, std::string build, std::chrono::milliseconds max_silence, std::string secret = {});
  ~CoordinatorService() override;  // answers callers who still wait

  // Waits until as many callers as the world has workers were refused, at most `limit`.
  void wait_until_refused(std::chrono::milliseconds limit);

  grpc::ServerUnaryReactor* Greet(grpc::CallbackServerContext* context, const workers::Greeting* greeting,
                                  workers::Welcome* welcome) override;
  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context, const workers::ExchangeRequest* request,
                                     workers::ExchangeReply* reply) override;
  grpc::ServerBidiReactor<workers::Beat, workers::Failure>* Watch(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* FindLate(grpc::CallbackServerContext* context, const workers::LateRequest* request,
                                     workers::Failure* reply) override;

 private:
  friend class WatchedWorker;
  using Time = std::chrono::steady_clock::time_point;

  // A call of Exchange that waits for other workers.
  struct Caller {
    grpc::ServerUnaryReactor* reactor = nullptr;
    workers::ExchangeReply* reply = nullptr;
    int rank = 0;
  };
  struct Refusal {
    std::string reason = {};
    std::string hint = {};
  };
  struct Meeting {
    std::vector<Caller> callers;
    std::map<int, std::string> values;  // by rank
    std::string what = {};              // the call's name
    Time deadline = {};
  };
  // The state of a worker whose watch has begun.
  struct Life {
    WatchedWorker* watch = nullptr;  // null once its stream has ended
    Time last_beat = {};
    std::int64_t calls = 0;
    std::string moment = {};
    std::string call = {};  // that runs
    bool leaving = false;
    bool signed_off = false;  // it makes no further call
  };

  // Says once that somebody without the secret called. Returns the status for them.
  grpc::Status turn_away(const std::string& peer);
  // Returns whether the beat may be heard.
  bool beat(WatchedWorker& from, const workers::Beat& beat);
  void ended(const WatchedWorker& from);

  // REQUIRE: `mutex_` is held.
  std::optional<Refusal> why_refused(const workers::ExchangeRequest& request, const std::string& host) const;
  void refuse(const Refusal& refusal, const Caller& caller, std::vector<Caller>& answered);
  void meet(const Caller& caller, const workers::ExchangeRequest& request, std::vector<Caller>& answered);
  // Fails the world if the worker waits for one that has signed off, or is in another call than one of those that
  // have begun as many.
  void compare_calls(int rank, std::vector<Caller>& answered);
  // `calls`: the worker's, which is in one.
  void fail_if_one_has_left(int rank, std::int64_t calls, std::vector<Caller>& answered);
  void fail_different(const std::string& calls, std::vector<Caller>& answered);
  void fail(const workers::Failure& failure, std::vector<Caller>& answered);
  void answer_all(Meeting& meeting, std::vector<Caller>& answered) const;
  std::optional<workers::Failure> find_late(const workers::LateRequest& request) const;
  void fail_silent_worker(Time now, std::vector<Caller>& answered);

  static void finish(const std::vector<Caller>& answered);  // REQUIRES: `mutex_` is not held
  void watch_the_clock();                                   // the body of timer_

  const int world_;
  const std::string build_;
  Doorkeeper doorkeeper_;
  const std::chrono::milliseconds max_silence_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Meeting> meetings_;  // by key
  std::map<int, Life> lives_;                // by rank
  bool complete_ = false;                    // all workers have introduced themselves
  std::optional<Refusal> refusal_;           // the first one, if the world was incomplete
  int refused_ = 0;                          // callers
  std::optional<workers::Failure> failure_;  // the first one
  bool stopping_ = false, turned_away_ = false;
  std::thread timer_;
};

// A worker's side of the watch: beats while the process lives, and learns of the first failure in the world.

// Thread-safe.
class Watch final : private grpc::ClientBidiReactor<workers::Beat, workers::Failure> {
 public:
  // Waits for worker 0 in the background. Calls `on_failure` once, as soon as a worker fails; mostly on a gRPC
  // thread. The end of worker 0 counts as its failure.
  Watch(workers::Coordinator::Stub& stub, CallersProof& proof, int rank, std::function<void()> on_failure);
  ~Watch() override;  // signs off, if worker 0 lives

  // `call`: as all workers name it.
  void begin_call(std::string call);
  void end_call();
  std::int64_t calls() const;
  void set_moment(std::string moment);
  // Tells all others that this worker has failed.
  void report(const std::string& reason);
  // Takes note of a failure, unless there is one already.
  void note(const workers::Failure& failure);

  std::optional<workers::Failure> failure() const;
  // Waits at most `limit` for a failure to be reported.
  std::optional<workers::Failure> wait_for_failure(std::chrono::milliseconds limit) const;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void beat();  // the body of thread_
  // REQUIRES: mutex_ is held.
  bool can_sign_off() const { return connected_ && !(failure_ && failure_->rank() == 0); }

  CallersProof& proof_;
  const int rank_;
  const std::function<void()> on_failure_;
  grpc::ClientContext context_;
  workers::Failure told_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // By mutex_.
  workers::Beat now_, sent_;
  bool writing_ = false, leaving_ = false, urgent_ = false, done_ = false, broken_ = false, connected_ = false;
  std::optional<workers::Failure> failure_;

  std::thread thread_;
};

}  // namespace headrace
