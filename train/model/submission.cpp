#include "headrace/train/model/submission.h"

#include <fmt/format.h>

#include <string>

namespace headrace {
namespace {

struct Failure {
  int replica = 0;
  Error error;
  std::optional<WorkerLost> elsewhere = {};  // the cause is another worker
};

int replica_of(const Strategy& strategy, const std::string& device) {
  int replica = strategy.local_replicas() - 1;
  while (replica > 0 && strategy.device(replica).info().name != device) --replica;
  return replica;
}

// Returns the first error that is not merely a consequence of another's, among the known one and those of the
// replicas' streams.
Failure find_cause(Strategy& strategy, const DeviceError* known) {
  std::optional<Failure> found;
  const auto note = [&found](int replica, const Error& error) {
    const auto* lost = dynamic_cast<const WorkerLost*>(&error);
    const bool consequence = lost != nullptr || error.code() == ErrorCode::kCancelled;
    const bool better = !found || (found->elsewhere ? !consequence : found->error.code() == ErrorCode::kCancelled);
    if (better) found = Failure{replica, error, lost == nullptr ? std::nullopt : std::optional(*lost)};
  };
  if (known != nullptr) note(replica_of(strategy, known->device()), *known);
  strategy.for_each_stream([&](int replica, Stream& stream) {
    try {
      stream.synchronize();
    } catch (const Error& error) {
      note(replica, error);
    } catch (const std::exception& error) {  // thrown by user code
      note(replica, Error(ErrorCode::kDevice, error.what()));
    }
  });
  return found.value_or(Failure{0, Error(ErrorCode::kDevice, "its work was skipped"), {}});
}

}  // namespace

void throw_failed(Strategy& strategy, std::uint64_t step, const DeviceError* known) {
  strategy.collective().abort(
      fmt::format("{} in step {}", known ? known->message() : std::string("a replica failed"), step));
  const Failure failure = find_cause(strategy, known);
  strategy.recover();
  if (const std::optional<WorkerLost>& lost = failure.elsewhere) {
    const std::string message = lost->message().substr(lost->device().size() + 2);  // without "worker 0: "
    throw WorkerLost(lost->code(), fmt::format("{}, in step {}", message, step), lost->device(), lost->hint());
  }
  const std::string& device = strategy.device(failure.replica).info().name;
  throw DeviceError(
      failure.error.code(),
      fmt::format("replica {} ({}) failed in step {}: {}", failure.replica, device, step, failure.error.message()),
      device, failure.error.hint());
}

}  // namespace headrace
