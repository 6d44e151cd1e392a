// Worker 0's side: gathers the workers' values and watches over their lives.
#pragma once

#include <coordinator.grpc.pb.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace headrace {

class WatchedWorker;

// Returns the host of an address as gRPC writes it: of "ipv4:10.0.0.5:4711" it is "10.0.0.5", of
// "ipv6:%5B::1%5D:4711" "::1".
std::string host_of_peer(const std::string& peer);

// Thread-safe: gRPC's threads call it. No call blocks one of them.
class CoordinatorService final : public workers::Coordinator::CallbackService {
 public:
  explicit CoordinatorService(int world);
  ~CoordinatorService() override;  // answers whoever still waits

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context, const workers::ExchangeRequest* request,
                                     workers::ExchangeReply* reply) override;
  grpc::ServerBidiReactor<workers::Beat, workers::Failure>* Watch(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* FindLate(grpc::CallbackServerContext* context, const workers::LateRequest* request,
                                     workers::Failure* reply) override;

 private:
  friend class WatchedWorker;
  using Time = std::chrono::steady_clock::time_point;

  // A call of Exchange that waits for others.
  struct Caller {
    grpc::ServerUnaryReactor* reactor = nullptr;
    workers::ExchangeReply* reply = nullptr;
    int rank = 0;
  };
  struct Meeting {
    std::vector<Caller> callers;
    std::map<int, std::string> values;  // by rank
    Time deadline = {};
  };
  // What is known of a worker whose watch has begun.
  struct Life {
    WatchedWorker* watch = nullptr;  // null once its stream has ended
    Time last_beat = {};
    std::int64_t calls = 0;
    std::string moment = {};
    bool leaving = false;
  };

  void beat(WatchedWorker& from, const workers::Beat& beat);
  void ended(const WatchedWorker& from);

  // These hold `mutex_`.
  std::string why_refused(const Meeting& meeting, const workers::ExchangeRequest& request) const;
  void fail(const workers::Failure& failure, std::vector<Caller>& answered);
  void answer_all(Meeting& meeting, std::vector<Caller>& answered) const;
  std::optional<workers::Failure> find_late(const workers::LateRequest& request) const;

  static void finish(const std::vector<Caller>& answered);  // without it
  void end_overdue_meetings();                              // a thread's work

  const int world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Meeting> meetings_;  // by key
  std::map<int, Life> lives_;                // by rank
  std::optional<workers::Failure> failure_;  // the first one
  bool stopping_ = false;
  std::thread timer_;
};

}  // namespace headrace
