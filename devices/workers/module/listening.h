// The addresses on which worker 0 listens, and TLS for those who connect.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "headrace/devices/workers.h"

namespace headrace {

// Whether an address in numbers is one of this host, or of a network that is nobody else's (RFC 1918, 4193, 6598).
bool is_loopback(const std::string& address);
bool is_private(const std::string& address);

// Starts worker 0's server for a service. Warns on standard error if strangers may reach it: an address that is
// not private, without a secret and TLS. Throws ConfigError if the address or port cannot be listened at.
std::unique_ptr<grpc::Server> listen(const WorkerPlan& plan, grpc::Service& service);

// Opens the channel to worker 0.
std::shared_ptr<grpc::Channel> call_worker_0(const WorkerPlan& plan);

// Deadlines as gRPC wants them.

inline std::chrono::system_clock::time_point after_seconds(double seconds) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace headrace
