#include "headrace/train/model/submission.h"

#include <fmt/format.h>

#include <string>

namespace headrace {
namespace {

struct Failure {
  int replica = 0;
  Error error;
};

int replica_of(const Strategy& strategy, const std::string& device) {
  int replica = strategy.local_replicas() - 1;
  while (replica > 0 && strategy.device(replica).info().name != device) --replica;
  return replica;
}

// Returns the first error that is not merely a consequence of another's, among the known one and those of the
// replicas' streams.
Failure find_cause(Strategy& strategy, const std::optional<DeviceError>& known) {
  std::optional<Failure> found;
  if (known) found = Failure{replica_of(strategy, known->device()), *known};
  const auto note = [&found](int replica, const Error& error) {
    if (!found || found->error.code() == ErrorCode::kCancelled) found = Failure{replica, error};
  };
  strategy.for_each_stream([&](int replica, Stream& stream) {
    try {
      stream.synchronize();
    } catch (const Error& error) {
      note(replica, error);
    } catch (const std::exception& error) {  // thrown by user code
      note(replica, Error(ErrorCode::kDevice, error.what()));
    }
  });
  return found.value_or(Failure{0, Error(ErrorCode::kDevice, "its work was skipped")});
}

}  // namespace

void throw_failed(Strategy& strategy, std::uint64_t step, const std::optional<DeviceError>& known) {
  strategy.collective().abort(
      fmt::format("{} in step {}", known ? known->message() : std::string("a replica failed"), step));
  const Failure failure = find_cause(strategy, known);
  strategy.recover();
  const std::string& device = strategy.device(failure.replica).info().name;
  throw DeviceError(
      failure.error.code(),
      fmt::format("replica {} ({}) failed in step {}: {}", failure.replica, device, step, failure.error.message()),
      device, failure.error.hint());
}

}  // namespace headrace
