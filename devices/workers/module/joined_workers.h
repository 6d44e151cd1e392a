// A worker that has joined: the coordinator's client and the mesh, with errors that name the failed worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/workers/module/coordinator_service.h"
#include "headrace/devices/workers/module/gloo_mesh.h"
#include "headrace/devices/workers/module/watch.h"
#include "headrace/devices/workers/transport.h"

namespace headrace {

class JoinedWorkers final : public WorkerTransport {
 public:
  JoinedWorkers(const WorkerPlan& plan, const WorkerOptions& options, const std::string& build);
  ~JoinedWorkers() override;

  int rank() const noexcept override { return plan_.rank; }
  const std::vector<WorkerInfo>& members() const noexcept override { return members_; }

  std::vector<std::string> all_gather(std::string_view mine) override;
  void all_reduce_sum(float* values, std::size_t count) override;
  void broadcast(std::byte* bytes, std::size_t count, int root) override;

  void set_moment(std::string moment) override { watch_->set_moment(std::move(moment)); }
  void abort(const std::string& reason) noexcept override;
  std::string failure() const override;

 private:
  // Ends calls that others still wait in.
  struct ShutDownSoon {
    void operator()(grpc::Server* server) const;
  };

  void serve();
  workers::ExchangeReply exchange(const std::string& key, std::string_view value, double timeout_seconds);
  // Returns the address at which the others reach this host.
  std::string introduce(const std::string& build);
  std::string find_address(const std::string& seen_as);
  void compare_builds(const std::vector<std::string>& builds) const;
  std::string list_missing(const workers::ExchangeReply& reply) const;

  void begin(const std::string& what);
  void require_no_failure() const;
  void abort_mesh() noexcept;
  // Runs a call of the mesh and turns its exceptions into errors that name the failed worker.
  void run(const std::string& what, const std::function<void()>& call);
  workers::Failure find_failure();
  [[noreturn]] void throw_failure(const workers::Failure& failure, const std::string& cause = {}) const;
  // Returns "worker 2 (node-c, process 4711) was lost (last heard of at step 57)".
  std::string describe(const workers::Failure& failure) const;
  std::string name_of(int rank) const;

  const WorkerPlan plan_;
  const WorkerOptions options_;
  std::unique_ptr<CoordinatorService> service_;  // worker 0's
  std::unique_ptr<grpc::Server, ShutDownSoon> server_;
  std::unique_ptr<workers::Coordinator::Stub> stub_;
  std::string coordinator_address_;  // as this host reached it last
  std::vector<WorkerInfo> members_;
  std::unique_ptr<GlooMesh> mesh_;
  std::atomic<GlooMesh*> abortable_{nullptr};  // the mesh once it is connected, for other threads
  std::unique_ptr<Watch> watch_;               // ends before the mesh that it aborts
  std::int64_t gathers_ = 0;
  std::string call_;  // the current or last one: "all-reduce 17 of 4096 bytes"
};

}  // namespace headrace
