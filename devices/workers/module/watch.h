// A worker's side of the watch: beats while the process lives, and hears of the first failure in the world.
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

namespace headrace {

// Thread-safe.
class Watch final : private grpc::ClientBidiReactor<workers::Beat, workers::Failure> {
 public:
  // Calls `on_failure` once, on a thread of gRPC's, as soon as a worker failed. Worker 0's end is a failure of
  // its.
  Watch(workers::Coordinator::Stub& stub, int rank, std::function<void()> on_failure);
  ~Watch() override;  // says goodbye

  void begin_call();
  std::int64_t calls() const;
  void set_moment(std::string moment);
  // Tells all others that this worker fails.
  void report(const std::string& reason);

  std::optional<workers::Failure> failure() const;
  // Waits so long at most for one to be told.
  std::optional<workers::Failure> wait_for_failure(std::chrono::milliseconds limit) const;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void beat();  // the thread's work
  void note(const workers::Failure& failure);

  const int rank_;
  const std::function<void()> on_failure_;
  grpc::ClientContext context_;
  workers::Failure told_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // By mutex_.
  workers::Beat now_, sent_;
  bool writing_ = false, leaving_ = false, urgent_ = false, done_ = false, broken_ = false;
  std::optional<workers::Failure> failure_;

  std::thread thread_;
};

}  // namespace headrace
