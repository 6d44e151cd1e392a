// A worker that has joined: the coordinator's client and the mesh, with errors that name the failed worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers/module/call_ring.h"
#include "headrace/devices/workers/module/coordinator_service.h"
#include "headrace/devices/workers/module/meshes.h"
#include "headrace/devices/workers/transport.h"

namespace headrace {

class JoinedWorkers final : public WorkerTransport {
 public:
  JoinedWorkers(const WorkerPlan& plan, const WorkerOptions& options, const std::string& build);
  ~JoinedWorkers() override;

  int rank() const noexcept override { return plan_.rank; }
  const std::vector<WorkerInfo>& members() const noexcept override { return members_; }
  const WorkerFact& transport() const noexcept override { return transport_; }

  std::vector<std::string> all_gather(std::string_view mine, std::string_view what) override;
  void all_reduce_sum(float* values, std::size_t count) override;
  void broadcast(std::byte* bytes, std::size_t count, int root) override;

  void set_moment(std::string moment) override;
  void sign_off() noexcept override;
  void abort(const std::string& reason) noexcept override;
  std::string failure() const override;

 private:
  // Until all have introduced themselves; until the mesh is there; then; from the destructor on.
  enum class Phase { kIntroducing, kConnecting, kJoined, kLeaving };

  void serve(const std::string& build);
  void join(const std::string& build);
  void watch_coordinator();
  // Calls worker 0. Waits for worker 0 and proves itself to it.
  void greet();
  workers::ExchangeReply exchange(workers::ExchangeRequest request, double timeout_seconds);
  [[noreturn]] void throw_unanswered(const grpc::Status& status, double timeout_seconds);
  [[noreturn]] void throw_unreached(const grpc::Status& status, double timeout_seconds) const;
  struct Introduced {
    std::string seen_as = {};  // this host's address for the coordinator
    std::vector<MpiOffer> offers = {};
  };
  Introduced introduce(const std::string& build, const MpiOffer& offer);
  // Returns the address at which the others reach this host.
  std::string find_address(const std::string& seen_as);
  // Returns every worker's value, by rank.
  std::vector<std::string> gather(const std::string& key, std::string_view value, std::string_view what = {});
  std::string list_missing(const workers::ExchangeReply& reply) const;
  void connect(const Introduced& introduced, const FoundMpi& mpi);
  void connect_mpi(const MpiModule& module);
  void connect_gloo(const std::string& address);
  void use(std::unique_ptr<Mesh> mesh) noexcept;
  // Ends the watch, the mesh and worker 0's service, in this order.
  void leave() noexcept;

  void require_no_failure();
  void fail(const std::string& reason) noexcept;
  void end_waiting() noexcept;
  // Runs a call and turns its exceptions into errors that name the failed worker. `name`: as all workers have it.
  template <typename Call>
  void run(CallKind kind, std::size_t bytes, std::string name, const Call& call);
  workers::Failure find_failure(bool overdue);
  [[noreturn]] void throw_failure(const workers::Failure& failure, const std::string& cause = {});
  // Returns "worker 2 (node-c, process 4711) was lost (last heard of at step 57)".
  std::string describe(const workers::Failure& failure) const;
  // REQUIRES: the world has failed.
  [[noreturn]] void throw_error(ErrorCode code, const std::string& message, const std::string& hint = {});
  // Returns where this worker is: "connecting", "all-reduce 17 of 4096 bytes"; empty before it has joined.
  std::string current_call() const;
  // Writes this worker's last calls, the first time. Returns where they are; empty unless the world is complete.
  std::string dump_calls(const std::string& reason) noexcept;
  std::string name_of(int rank) const;

  const WorkerPlan plan_;
  const WorkerOptions options_;
  const std::string secret_;
  CallersProof proof_;
  std::atomic<Phase> phase_{Phase::kIntroducing};
  std::atomic<bool> ended_{false};               // no call may wait any longer
  std::unique_ptr<CoordinatorService> service_;  // worker 0's
  std::unique_ptr<grpc::Server> server_;
  bool refused_ = false;
  std::atomic<bool> signed_off_{false};
  std::unique_ptr<workers::Coordinator::Stub> stub_;
  std::string coordinator_address_;  // as this host reached it last
  std::vector<WorkerInfo> members_;
  WorkerFact transport_;
  std::unique_ptr<Mesh> mesh_;
  std::atomic<Mesh*> abortable_{nullptr};       // the mesh, for other threads
  std::atomic<const MpiModule*> mpi_{nullptr};  // once this worker has started MPI
  std::unique_ptr<Watch> watch_;                // ends before the mesh that it aborts
  std::int64_t gathers_ = 0;
  std::string call_;  // the name of this thread's last one
  CallRing ring_;
  std::mutex dump_mutex_;
  std::string dumped_;  // by dump_mutex_: what dump_calls() returned
};

}  // namespace headrace
