#include "headrace/tools/runs/worker_run.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {

void run_with_workers(const std::function<std::shared_ptr<Workers>()>& open,
                      const std::function<void(const std::shared_ptr<Workers>&)>& work) {
  std::shared_ptr<Workers> workers;
  try {
    workers = open();
    work(workers);
  } catch (const WorkersDiffer&) {
    throw;  // the others know
  } catch (const StoppedBySignal&) {
    throw;  // all have stopped
  } catch (const EndedByAnother&) {
    throw;
  } catch (const std::exception& error) {
    const auto* named = dynamic_cast<const Error*>(&error);
    if (workers) workers->abort(named != nullptr ? named->message() : error.what());
    if (const auto* lost = dynamic_cast<const WorkerLost*>(&error)) throw EndedByAnother(*lost);
    throw;
  }
}

namespace {

constexpr int kClockRounds = 9;

using Json = nlohmann::ordered_json;

}  // namespace

// All replies of a round leave the coordinator at once.
std::vector<std::int64_t> clock_offsets(Workers& workers) {
  nlohmann::json mine;
  for (int round = 0; round < kClockRounds; ++round) {
    workers.all_gather("");
    mine.push_back(now_ns());
  }
  std::vector<std::vector<std::int64_t>> times;
  for (const std::string& one : workers.all_gather(mine.dump())) times.push_back(nlohmann::json::parse(one));
  std::vector<std::int64_t> offsets;
  for (const std::vector<std::int64_t>& each : times) {
    std::vector<std::int64_t> ahead;
    for (std::size_t round = 0; round < each.size(); ++round) ahead.push_back(each[round] - times[0][round]);
    std::ranges::nth_element(ahead, ahead.begin() + kClockRounds / 2);
    offsets.push_back(ahead[kClockRounds / 2]);
  }
  return offsets;
}

std::string merge_traces(const std::vector<std::string>& traces, const std::vector<std::int64_t>& offsets,
                         const std::vector<std::string>& names) {
  std::vector<Json> parsed;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), dropped = 0;
  std::vector<std::int64_t> begins;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    parsed.push_back(Json::parse(traces[rank]));
    const Json& facts = parsed.back()["otherData"];
    begins.push_back(facts["begin_ns"].get<std::int64_t>() - offsets[rank]);
    dropped += facts["dropped"].get<std::int64_t>();
    if (parsed.back()["traceEvents"].size() > 0) first = std::min(first, begins.back());
  }
  Json events = Json::array();
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    events.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", rank + 1}, {"args", {{"name", names[rank]}}}});
    for (Json& event : parsed[rank]["traceEvents"]) {
      event["pid"] = rank + 1;
      if (event.contains("ts")) {
        event["ts"] = event["ts"].get<double>() + 1e-3 * static_cast<double>(begins[rank] - first);
      }
      events.push_back(std::move(event));
    }
  }
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}, {"otherData", {{"dropped", dropped}}}}
             .dump() +
         "\n";
}

std::string trace_text(const Trace& trace, Workers* workers) {
  if (workers == nullptr) return trace.to_json();
  const std::vector<std::int64_t> offsets = clock_offsets(*workers);
  const std::vector<std::string> traces = workers->all_gather(trace.to_json());
  if (workers->rank() != 0) return {};
  std::vector<std::string> names;
  for (int rank = 0; rank < workers->count(); ++rank) names.push_back(workers->at(rank).to_string(rank));
  return merge_traces(traces, offsets, names);
}

}  // namespace headrace::tools
