// The counters of all threads, put together when somebody asks.
#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

void add_work(StageStats& stage, const StageClock& clock) {
  stage.items += clock.items();
  stage.busy_ns += clock.ns();
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

}  // namespace

StageStats StreamEngine::read_stats() const {
  StageStats stage{.name = "read", .kind = StageKind::kRead, .threads = active_readers_.load()};
  for (const EngineThread& thread : readers_) {
    add_work(stage, thread.state().reading);
    add_waits(stage, thread.state().waits);
  }
  for (const EngineThread& thread : workers_) add_work(stage, thread.state().reading);  // with a warm cache
  return stage;
}

void StreamEngine::add_compute_stats(std::vector<StageStats>& stages) const {
  StageStats waiting{.threads = active_threads_.load()};
  for (const EngineThread& thread : workers_) add_waits(waiting, thread.state().waits);
  const std::vector<StageName>& names = program_.stages();
  for (std::size_t i = 0; i < names.size() + mixers_.size(); ++i) {
    StageStats stage = waiting;
    const bool mixes = i >= names.size();
    stage.name = mixes ? describe(plan_.batch_operations[i - names.size()].operation) : names[i].name;
    stage.kind = mixes ? StageKind::kOperate : names[i].kind;
    for (const EngineThread& thread : workers_) add_work(stage, thread.state().stages[i]);
    stages.push_back(std::move(stage));
  }
}

StageStats StreamEngine::copy_stats() const {
  StageStats stage{.name = conversion_ ? "copy and convert" : "copy", .kind = StageKind::kCopy, .threads = 0};
  for (const auto& clock : copy_clocks_) {
    if (clock == nullptr) continue;
    ++stage.threads;
    add_work(stage, clock->copying());
  }
  return stage;
}

StageStats StreamEngine::consumer_stats() const {
  StageStats stage{.name = "consumer", .kind = StageKind::kConsume, .threads = layout_.replicas};
  for (const Consumer& consumer : consumers_) {
    add_work(stage, consumer.busy);
    add_waits(stage, consumer.waits);
  }
  return stage;
}

std::vector<StageStats> StreamEngine::stage_stats() const {
  std::vector<StageStats> stages{{.name = "assemble", .kind = StageKind::kAssemble}};
  add_work(stages.back(), assembling_->stages.front());
  add_waits(stages.back(), assembling_->waits);
  if (!readers_.empty()) stages.push_back(read_stats());
  add_compute_stats(stages);
  if (copies()) stages.push_back(copy_stats());
  stages.push_back(consumer_stats());
  return stages;
}

LoaderStats StreamEngine::stats() const {
  LoaderStats stats;
  stats.batches = position() - first_;
  std::uint64_t ready = 0, asked_ready = 0;
  for (const Consumer& consumer : consumers_) {
    stats.examples += consumer.examples.load();
    stats.bad_records = std::max(stats.bad_records, consumer.bad.load());
    stats.warned_records = std::max(stats.warned_records, consumer.warned.load());
    stats.oriented_images = std::max(stats.oriented_images, consumer.oriented.load());
    stats.stall_ns = std::max(stats.stall_ns, consumer.stall_ns.load());
    ready += consumer.ready_sum.load();
    asked_ready += consumer.asked_ready.load();
    stats.asked += consumer.asked.load();
  }
  stats.bytes = stats.examples * bytes_of_sample(plan_.fields);
  if (stats.asked > 0) {
    stats.ready_batches = static_cast<double>(ready) / static_cast<double>(stats.asked);
    stats.ready_share = static_cast<double>(asked_ready) / static_cast<double>(stats.asked);
  }
  stats.slots = static_cast<int>(slots_.size());
  stats.memory_bytes = memory_budget_.used();
  stats.pinned_bytes = pinned_budget_.used();
  stats.kept_records = resident_records_.load(std::memory_order_relaxed);
  stats.kept_bytes = residency_.resident ? residency_.bytes : 0;
  stats.stages = stage_stats();
  stats.elapsed_ns = now_ns() - start_ns_;  // not before what was counted
  for (const StageStats& stage : stats.stages) {
    if (stage.kind == StageKind::kRead) stats.read_ns += stage.busy_ns;
    if (stage.kind == StageKind::kDecode) stats.decode_ns += stage.busy_ns;
    if (stage.kind == StageKind::kOperate) stats.operate_ns += stage.busy_ns;
  }
  for (const auto* threads : {&workers_, &readers_}) {
    for (const EngineThread& thread : *threads) stats.read_retries += thread.state().retries.load();
  }
  stats.first_batch_ns = first_batch_ns_.load();
  if (plan_.cache != nullptr) stats.cache = plan_.cache->counters();
  return stats;
}

}  // namespace headrace
