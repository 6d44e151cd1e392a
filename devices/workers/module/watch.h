// A worker's side of the watch: beats while the process lives, and learns of the first failure in the world.
#pragma once

#include <coordinator.grpc.pb.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "headrace/devices/workers/module/world_secret.h"

namespace headrace {

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
