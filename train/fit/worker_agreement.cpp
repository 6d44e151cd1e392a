#include "headrace/train/fit/worker_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr double kMeetEverySeconds = 1;
constexpr double kShortestStep = 1e-6;  // seconds; a clock may not have moved

}  // namespace

bool WorkerAgreement::agree(bool stop, bool interrupted, const std::string& state) {
  if (!several()) return stops_ = stop || interrupted;
  const double pace = since_.seconds() / static_cast<double>(std::max<std::uint64_t>(1, steps_));
  const nlohmann::json mine{
      {"stop", stop}, {"interrupted", interrupted}, {"seconds_per_step", pace}, {"state", state}};
  double slowest = kShortestStep;
  std::vector<std::string> states;
  stops_ = false;
  interrupted_ = std::nullopt;
  for (const std::string& said : workers_->all_gather(mine.dump(), "the steps' meeting")) {
    const nlohmann::json each = nlohmann::json::parse(said);
    const bool was_interrupted = each["interrupted"].get<bool>();
    if (was_interrupted && !interrupted_) interrupted_ = static_cast<int>(states.size());
    stops_ = stops_ || was_interrupted || each["stop"].get<bool>();
    slowest = std::max(slowest, each["seconds_per_step"].get<double>());
    states.push_back(each["state"]);
  }
  if (interrupted) interrupted_ = std::nullopt;
  require_equal_values("state", states);
  if (steps_ > 0) next_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kMeetEverySeconds / slowest));
  steps_ = 0;
  since_.restart();
  return stops_;
}

void WorkerAgreement::require_uninterrupted(const std::string& outcome) const {
  if (!interrupted_) return;
  throw WorkerInterrupted(
      fmt::format("{} was interrupted: {}", workers_->at(*interrupted_).to_string(*interrupted_), outcome));
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
