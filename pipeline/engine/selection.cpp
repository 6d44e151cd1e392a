#include "headrace/pipeline/engine/selection.h"

#include <fmt/format.h>
#include <tbb/info.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/failure.h"
#include "headrace/pipeline/engine/planner.h"

namespace headrace {
namespace {

bool changes_order(const Stage& stage) {
  return std::holds_alternative<ShuffleStage>(stage) || std::holds_alternative<ShuffleWindowStage>(stage);
}

// Which records come at which position depends on seed or epoch.
bool is_random(const Stage& stage) {
  if (changes_order(stage)) return true;
  const auto* combine = std::get_if<CombineStage>(&stage);
  if (combine == nullptr) return false;
  if (std::holds_alternative<MixOptions>(combine->combination->how)) return true;
  for (const CombinedPart& part : combine->combination->parts) {
    for (const Stage& inner : part.stages) {
      if (is_random(inner)) return true;
    }
  }
  return false;
}

// The failure of the smallest position, found by threads in any order.
class FirstFailure {
 public:
  bool is_beyond(std::uint64_t position) const noexcept { return position > at_.load(std::memory_order_relaxed); }

  void note(std::uint64_t position, Failure failure) {
    const std::lock_guard lock(mutex_);
    if (failure_ && position >= at_.load()) return;
    at_.store(position);
    failure_ = std::move(failure);
  }

  void raise() const {
    if (failure_) failure_->raise();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> at_{std::numeric_limits<std::uint64_t>::max()};
  std::optional<Failure> failure_;
};

// Judges the records at 64 positions at a time.
class Judge {
 public:
  Judge(const Source& source, const IndexMap& map, const RecordFilter& filter, FirstFailure& failure)
      : source_(source), cursor_(map), size_(map.size()), filter_(filter), failure_(failure) {}

  std::uint64_t word(std::uint64_t index) {
    std::uint64_t bits = 0;
    const std::uint64_t first = index * 64, end = std::min(first + 64, size_);
    for (std::uint64_t position = first; position < end && !failure_.is_beyond(position); ++position) {
      const std::uint64_t record = cursor_.locate(0, position).record;
      try {
        const RecordView view = source_.read(record, scratch_);
        if (filter_.keeps(RawRecord(source_.info().fields, view))) bits |= std::uint64_t{1} << (position - first);
      } catch (const DataError& error) {
        failure_.note(position, Failure::of_record(source_, record, 0, error));
      } catch (const std::exception& error) {
        const Error named(ErrorCode::kInvalidArgument, describe(filter_) + ": " + error.what());
        failure_.note(position, Failure::of_record(source_, record, 0, named));
      }
    }
    return bits;
  }

 private:
  const Source& source_;
  IndexCursor cursor_;
  std::uint64_t size_;
  const RecordFilter& filter_;
  FirstFailure& failure_;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::size_t stages_before_filter(const std::vector<Stage>& index_stages) {
  std::size_t end = index_stages.size();
  while (end > 0 &&
         (changes_order(index_stages[end - 1]) || std::holds_alternative<RepeatStage>(index_stages[end - 1]))) {
    --end;
  }
  for (std::size_t i = 0; i < end; ++i) {
    if (!is_random(index_stages[i])) continue;
    throw ConfigError(fmt::format("filter() behind {}, then {}: what it sees changes from epoch to epoch",
                                  describe(index_stages[i]), describe(index_stages[end - 1])),
                      "put .filter() first, before shuffling, mixing and taking parts");
  }
  return end;
}

BitSelect Selection::scan() const {
  const StreamPlan plan = make_stream_plan(before_);
  std::vector<Stage> stages = plan.index_stages;
  stages.resize(stages_before_filter(stages));
  const IndexMap map(plan.source->info().records, stages, 0);
  std::vector<std::uint64_t> words(static_cast<std::size_t>((map.size() + 63) / 64));
  FirstFailure failure;
  // Threads of its own: the caller's arena may be at work, and reads may block.
  std::atomic<std::size_t> next{0};
  const auto judge_words = [&] {
    Judge judge(*plan.source, map, filter_, failure);
    for (std::size_t i = 0; (i = next.fetch_add(1)) < words.size();) words[i] = judge.word(i);
  };
  {
    std::vector<std::jthread> helpers;
    const auto most = std::min(words.size(), static_cast<std::size_t>(tbb::info::default_concurrency()));
    for (std::size_t i = 1; i < most; ++i) helpers.emplace_back(judge_words);
    judge_words();
  }
  failure.raise();
  return BitSelect(std::move(words));
}

const BitSelect& Selection::kept() const {
  const std::lock_guard lock(mutex_);
  if (!kept_) kept_ = scan();
  return *kept_;
}

}  // namespace headrace
