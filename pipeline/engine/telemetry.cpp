#include "headrace/pipeline/engine/telemetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "headrace/pipeline/engine/tuning.h"

namespace headrace {
namespace {

void add_work(StageStats& stage, const StageClock& clock) {
  stage.items += clock.items();
  stage.busy_ns += clock.ns();
  stage.decoded_bytes += clock.decoded_bytes();
}

std::uint64_t bytes_of_sample(const Fields& fields) {
  std::uint64_t bytes = 0;
  for (const Field& field : fields)
    bytes += static_cast<std::uint64_t>(field.shape.elements()) * size_of(field.dtype);
  return bytes;
}

void add_waits(StageStats& stage, const WaitClock& waits) {
  stage.wait_ns += waits.ns();
  waits.read_into(stage.waits);
}

void add_consumer(LoaderStats& stats, const Consumer& consumer) {
  stats.examples += consumer.examples.load();
  stats.bad_records = std::max(stats.bad_records, consumer.bad.bad());
  stats.warned_records = std::max(stats.warned_records, consumer.bad.warned());
  stats.oriented_images = std::max(stats.oriented_images, consumer.bad.oriented());
  stats.consumer_wait_ns = std::max(stats.consumer_wait_ns, consumer.wait_ns.load());
  stats.asked += consumer.asked.load();
}

void add_stage_times(LoaderStats& stats) {
  for (const StageStats& stage : stats.stages) {
    if (stage.kind == StageKind::kRead) stats.read_ns += stage.busy_ns;
    if (stage.kind == StageKind::kDecode) stats.decode_ns += stage.busy_ns;
    if (stage.kind == StageKind::kOperate) stats.operate_ns += stage.busy_ns;
  }
}

// Returns the sum of the caches' counters; misses are those of the first cache, after which a sample is made anew.
CacheCounters cache_counters(const std::vector<PlannedCache>& caches) {
  CacheCounters sum;
  for (const PlannedCache& planned : caches) {
    const CacheCounters one = planned.cache->counters();
    if (planned.cache == caches.front().cache) sum.misses = one.misses;
    sum.hits += one.hits;
    sum.records += one.records;
    sum.bytes += one.bytes;
    sum.refused += one.refused;
    sum.bad += one.bad;
  }
  return sum;
}

}  // namespace

Telemetry::Telemetry(const Parts& parts) : at_(parts), start_ns_(parts.ring.clock().now()) {}

StageStats Telemetry::read_stats(const Tuning& tuning) const {
  const bool pulled = at_.run.source().info().streamed;
  StageStats stage{.name = pulled ? "pull" : "read",
                   .kind = StageKind::kRead,
                   .remote = at_.run.reads_network(),
                   .threads = pulled ? 1 : tuning.readers()};
  for (const EngineThread& thread : at_.readers.threads()) {
    add_work(stage, thread.state().reading);
    add_waits(stage, thread.state().waits);
  }
  for (const auto& lane : at_.lanes.lanes()) add_work(stage, lane->state.reading);  // with a warm cache
  return stage;
}

void Telemetry::add_compute_stats(const Tuning& tuning, std::vector<StageStats>& stages) const {
  StageStats waiting{.threads = tuning.lanes()};
  for (const auto& lane : at_.lanes.lanes()) add_waits(waiting, lane->state.waits);
  const std::vector<StageName>& names = at_.run.program.stages();
  const auto& mixing = at_.run.plan.batch_operations;
  for (std::size_t i = 0; i < names.size() + mixing.size(); ++i) {
    StageStats stage = waiting;
    const bool mixes = i >= names.size();
    stage.name = mixes ? describe(mixing[i - names.size()].operation) : names[i].name;
    stage.kind = mixes ? StageKind::kOperate : names[i].kind;
    for (const auto& lane : at_.lanes.lanes()) add_work(stage, lane->state.stages[i]);
    stages.push_back(std::move(stage));
  }
}

StageStats Telemetry::copy_stats() const {
  const bool converts = at_.transfer.conversion() != nullptr;
  StageStats stage{.name = converts ? "copy and convert" : "copy", .kind = StageKind::kCopy, .threads = 0};
  for (const auto& clock : at_.transfer.clocks()) {
    ++stage.threads;
    add_work(stage, clock->copying());
  }
  return stage;
}

StageStats Telemetry::consumer_stats(const Delivery& delivery) const {
  StageStats stage{.name = "consumer", .kind = StageKind::kConsume, .threads = at_.run.layout.local_replicas};
  for (const auto& consumer : delivery.consumers()) {
    add_work(stage, consumer->busy);
    add_waits(stage, consumer->waits);
  }
  return stage;
}

std::vector<StageStats> Telemetry::stage_stats(const Delivery& delivery, const Tuning& tuning) const {
  std::vector<StageStats> stages{{.name = "assemble", .kind = StageKind::kAssemble}};
  add_work(stages.back(), at_.assembler.stages.front());
  add_waits(stages.back(), at_.assembler.waits);
  if (!at_.readers.threads().empty()) stages.push_back(read_stats(tuning));
  add_compute_stats(tuning, stages);
  if (at_.ring.copied()) stages.push_back(copy_stats());
  stages.push_back(consumer_stats(delivery));
  return stages;
}

LoaderStats Telemetry::stats(const Delivery& delivery, const Tuning& tuning) const {
  LoaderStats stats;
  stats.batches = delivery.position() - at_.ring.first();
  std::uint64_t ready = 0, asked_ready = 0;
  for (const auto& consumer : delivery.consumers()) {
    add_consumer(stats, *consumer);
    ready += consumer->ready_sum.load();
    asked_ready += consumer->asked_ready.load();
  }
  stats.bytes = stats.examples * bytes_of_sample(at_.run.plan.fields);
  if (stats.asked > 0) {
    stats.ready_batches = static_cast<double>(ready) / static_cast<double>(stats.asked);
    stats.ready_share = static_cast<double>(asked_ready) / static_cast<double>(stats.asked);
  }
  stats.slots = static_cast<int>(at_.ring.size());
  stats.memory_bytes = at_.budgets.memory.used();
  stats.pinned_bytes = at_.budgets.pinned.used();
  stats.kept_records = at_.transfer.resident_records();
  stats.device_decoded = at_.transfer.decoded();
  stats.kept_bytes = at_.run.residency.resident ? at_.run.residency.bytes : 0;
  stats.stages = stage_stats(delivery, tuning);
  stats.elapsed_ns = at_.ring.clock().now() - start_ns_;  // not before what was counted
  add_stage_times(stats);
  for (const auto& lane : at_.lanes.lanes()) stats.read_retries += lane->state.retries.load();
  for (const EngineThread& thread : at_.readers.threads()) stats.read_retries += thread.state().retries.load();
  stats.first_batch_ns = at_.ring.first_batch_ns();
  stats.cache = cache_counters(at_.run.plan.caches);
  for (const PlannedCache& planned : at_.run.plan.caches) {
    if (stats.cache_trouble.empty()) stats.cache_trouble = planned.cache->trouble();
  }
  return stats;
}

// Over all readers and lanes.
std::string Telemetry::longest_step() const {
  std::string doing;
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  const auto look_at = [&](const ThreadState& state) {
    const std::string now = state.doing();
    if (now.empty() || state.since_ns() >= oldest) return;
    oldest = state.since_ns();
    doing = now;
  };
  for (const EngineThread& thread : at_.readers.threads()) look_at(thread.state());
  for (const auto& lane : at_.lanes.lanes()) look_at(lane->state);
  return doing;
}

std::string Telemetry::why_not_out(const SlotMark::Value& mark) const {
  if (mark.state == SlotState::kWritten || mark.state == SlotState::kCopying) {
    return fmt::format("waiting for the copy of batch {} to its devices", mark.sequence);
  }
  const std::string doing = longest_step();
  return fmt::format("waiting for {}", doing.empty() ? "the compute threads" : doing);
}

}  // namespace headrace
