#include "headrace/train/fit/worker_agreement.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr double kMeetEverySeconds = 1;
constexpr double kShortestStep = 1e-6;  // seconds; a clock may not have moved

}  // namespace

bool WorkerAgreement::agree(bool stop, const std::string& state) {
  if (!several()) return stops_ = stop;
  const double pace = since_.seconds() / static_cast<double>(std::max<std::uint64_t>(1, steps_));
  const nlohmann::json mine{{"stop", stop}, {"seconds_per_step", pace}, {"state", state}};
  double slowest = kShortestStep;
  std::vector<std::string> states;
  stops_ = false;
  for (const std::string& said : workers_->all_gather(mine.dump())) {
    const nlohmann::json each = nlohmann::json::parse(said);
    stops_ = stops_ || each["stop"].get<bool>();
    slowest = std::max(slowest, each["seconds_per_step"].get<double>());
    states.push_back(each["state"]);
  }
  require_equal_values("state", states);
  if (steps_ > 0) next_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kMeetEverySeconds / slowest));
  steps_ = 0;
  since_.restart();
  return stops_;
}

void tell_workers(const Strategy& strategy, const std::exception& error) noexcept {
  if (!strategy.workers()) return;
  const bool known =
      dynamic_cast<const WorkersDiffer*>(&error) != nullptr || dynamic_cast<const WorkerLost*>(&error) != nullptr;
  if (known) return;
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours != nullptr && ours->code() == ErrorCode::kCancelled) return;  // all stop
  strategy.collective().abort(ours != nullptr ? ours->message() : error.what());
}

}  // namespace headrace
