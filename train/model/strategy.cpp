#include "headrace/train/strategy.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/model/model_state.h"

namespace headrace {
namespace {

// For the other replicas and workers.
std::string reason_of_current_exception() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {  // of a custom step
  }
  return "a replica failed";
}

}  // namespace

Strategy::Strategy(DeviceGroup& devices, const StrategyOptions& options)
    : devices_(&devices), workers_(options.workers) {
  if (devices.size() == 0) throw ConfigError("a strategy needs at least one device");
  if (!options.standalone && !workers_) {
    refuse_to_run_beside_others(
        std::getenv,
        joined({advice("give {} = open_world() to train with the others", named("StrategyOptions::workers")),
                advice("set {} where each is to train alone", named("StrategyOptions::standalone", "true"))},
               ", or "));
  }
  for (int replica = 0; replica < devices.size(); ++replica) {
    Device& device = devices[replica];
    if (device.kernels() == nullptr) {
      const std::string why = device.why_no_kernels();
      throw DeviceError(ErrorCode::kUnsupported, "cannot compute on it" + (why.empty() ? "" : ": " + why),
                        device.info().name, "choose other devices, as \"cpu\"");
    }
    streams_.push_back(device.create_urgent_stream());
  }
  lanes_.resize(streams_.size());
  collectives_.push_back(create_collective(devices, workers_));
  open_streams_beside();
  if (options.announce && is_chief()) {
    std::printf("%s\n", to_string().c_str());
    std::fflush(stdout);
  }
}

void Strategy::open_streams_beside() {
  const bool several = world_replicas() > 1;
  for (int replica = 0; replica < local_replicas(); ++replica) {
    Device& on = device(replica);
    const bool may_be = !several || collective().runs_beside();
    const bool beside = may_be && !on.info().host_memory;
    const bool apart = several && may_be && (!on.info().host_memory || workers_);
    communication_.push_back(apart ? on.create_urgent_stream() : nullptr);
    weights_.push_back(beside ? on.create_stream() : nullptr);
    updates_.push_back(beside && !several ? on.create_stream() : nullptr);
  }
}

// A replica may be waiting in a collective for another one that will never come. Other workers may still have to
// do.
Strategy::~Strategy() {
  if (!workers_) {
    collective().abort("the strategy is being destroyed");
  } else if (std::uncaught_exceptions() > 0) {
    collective().abort("an error ended its work");
  }
}

ReplicaStreams Strategy::streams(int replica) const {
  Stream& compute = stream(replica);
  const auto own_or_compute = [&](const auto& streams) -> Stream& {
    const auto& own = streams.at(static_cast<std::size_t>(replica));
    return own ? *own : compute;
  };
  return {.compute = compute,
          .communication = own_or_compute(communication_),
          .weights = own_or_compute(weights_),
          .updates = own_or_compute(updates_)};
}

Stream& Strategy::lane(int replica, int lane) {
  const int count = lanes(replica);
  if (count == 1) return stream(replica);
  std::vector<std::unique_ptr<Stream>>& opened = lanes_.at(static_cast<std::size_t>(replica));
  while (static_cast<int>(opened.size()) < count) opened.push_back(device(replica).create_lane());
  return *opened.at(static_cast<std::size_t>(lane));
}

Model Strategy::build(const Net& net, const BuildOptions& options) {
  auto graph = std::make_unique<Graph>(options.fields);
  graph->finish(net(*graph));
  return Model(std::make_unique<ModelState>(*this, std::move(graph), options.seed));
}

void Strategy::synchronize() {
  std::exception_ptr first;
  for_each_stream([&](int, Stream& stream) {
    try {
      stream.synchronize();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  });
  if (first) std::rethrow_exception(first);
}

void Strategy::recover() noexcept {
  collective().abort(reason_of_current_exception());
  for_each_stream([](int, Stream& stream) {
    try {
      stream.synchronize();
    } catch (const std::exception&) {
      // Already reported where the failure was found; these are its consequences.
    }
  });
  if (workers_) return;  // a group that one worker opened alone would wait for the others forever
  try {
    collectives_.push_back(create_collective(*devices_));
  } catch (const std::exception&) {
    // As above: the failure is known already.
  }
}

std::string Strategy::to_string() const {
  const std::string name = workers_ ? "MultiWorkerMirroredStrategy" : "MirroredStrategy";
  const std::string where = workers_ ? fmt::format(" on each of {} workers", workers_->count()) : "";
  return fmt::format("{} over {}{}\nNumber of devices: {}", name, devices_->to_string(), where, world_replicas());
}

}  // namespace headrace
