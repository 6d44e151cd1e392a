// A worker that takes part in the protocol for a while and is then gone, as if its process had been killed.
#pragma once

#include <coordinator.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "headrace/devices/workers.h"
#include "headrace/devices/workers/module/meshes.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// What this program's workers introduce themselves with (devices/workers/workers.cpp).
inline constexpr const char* kOwnBuild = "Headrace " HEADRACE_VERSION ", compiled by " __VERSION__;

class FakeWorker {
 public:
  explicit FakeWorker(const WorkerPlan& plan)
      : plan_(plan),
        stub_(workers::Coordinator::NewStub(
            grpc::CreateCustomChannel(plan.coordinator, grpc::InsecureChannelCredentials(), patient()))) {
    context_.set_wait_for_ready(true);
    watch_ = stub_->Watch(&context_);
    workers::Beat beat;
    beat.set_rank(plan.rank);
    watch_->Write(beat);
  }
  // Without signing off.
  ~FakeWorker() { context_.TryCancel(); }
  FakeWorker(const FakeWorker&) = delete;
  FakeWorker& operator=(const FakeWorker&) = delete;

  workers::ExchangeReply exchange(const std::string& key, std::string_view value, const std::string& build = {}) {
    workers::ExchangeRequest request;
    request.set_key(key);
    request.set_rank(plan_.rank);
    request.set_workers(plan_.workers);
    request.set_value(std::string(value));
    request.set_timeout_ms(10'000);
    request.set_build(build);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    workers::ExchangeReply reply;
    stub_->Exchange(&context, request, &reply);
    return reply;
  }

  void introduce(const std::string& build = kOwnBuild) {
    const MpiOffer offer{.why_not = "a test"};
    exchange("introduction", nlohmann::json{{"host", "fake"}, {"process", 1}, {"mpi", offer.to_json()}}.dump(),
             build);
  }

  void tell_address() {
    exchange("addresses", nlohmann::json{{"own", "127.0.0.1"}, {"coordinator", "127.0.0.1"}}.dump());
  }

  // Returns every worker's bytes.
  std::vector<std::string> gather(std::string_view mine) {
    const workers::ExchangeReply reply = exchange("gather " + std::to_string(++gathers_), mine);
    return {reply.values().begin(), reply.values().end()};
  }

 private:
  // The coordinator may not be there yet.
  static grpc::ChannelArguments patient() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    return arguments;
  }

  const WorkerPlan plan_;
  std::unique_ptr<workers::Coordinator::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<workers::Beat, workers::Failure>> watch_;
  int gathers_ = 0;
};

}  // namespace headrace::test
