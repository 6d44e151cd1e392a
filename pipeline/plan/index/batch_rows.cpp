#include "headrace/pipeline/plan/index/batch_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "headrace/pipeline/plan/index/combination_index.h"
#include "headrace/pipeline/plan/index/index_map.h"

namespace headrace {
namespace {

// Returns the positions that a part has before its batch(): the same in every epoch and for every seed.
std::uint64_t positions_of(const CombinedPart& part) { return IndexMap(part.records, part.stages, 0).size(); }

BatchRows rows_of_part(const CombinedPart& part) {
  const PartBatches& batches = *part.batches;
  return batches.combined != nullptr ? BatchRows(*batches.combined)
                                     : BatchRows(positions_of(part), batches.options);
}

// The same combination, of the numbers of the parts' batches.
Combination of_batch_numbers(const Combination& combination) {
  Combination numbers{.how = combination.how, .parts = {}};
  std::uint64_t first = 0;
  for (const CombinedPart& part : combination.parts) {
    const std::uint64_t count = rows_of_part(part).count();
    numbers.parts.push_back({.name = part.name,
                             .records = count,
                             .first_record = first,
                             .stages = stages_on_batches(part.batches->combined.get(), part.batches->stages)});
    first += count;
  }
  return numbers;
}

}  // namespace

void BatchRows::add(std::uint64_t positions, const BatchOptions& batch) {
  Run run{.first_batch = runs_.empty() ? 0 : count(),
          .first_position = runs_.empty() ? 0 : runs_.back().first_position + runs_.back().positions,
          .positions = positions,
          .full = static_cast<std::uint64_t>(batch.global_batch)};
  const bool keeps_rest = !batch.drop_remainder && positions % run.full != 0;
  run.batches = positions / run.full + (keeps_rest ? 1 : 0);
  even_ = even_ && !keeps_rest && (runs_.empty() || run.full == full_);
  full_ = std::max(full_, run.full);
  largest_ = std::max(largest_, std::min(run.full, positions));
  runs_.push_back(run);
}

void BatchRows::add(const Combination& combination) {
  for (const CombinedPart& part : combination.parts) {
    if (part.batches->combined != nullptr) {
      add(*part.batches->combined);
    } else {
      add(positions_of(part), part.batches->options);
    }
  }
}

const BatchRows::Run& BatchRows::run_of(std::uint64_t batch) const noexcept {
  return *(std::ranges::upper_bound(runs_, batch, {}, &Run::first_batch) - 1);
}

std::uint64_t BatchRows::first_of(std::uint64_t batch) const noexcept {
  const Run& run = run_of(batch);
  return run.first_position + (batch - run.first_batch) * run.full;
}

std::uint64_t BatchRows::examples_of(std::uint64_t batch) const noexcept {
  const Run& run = run_of(batch);
  return std::min(run.full, run.positions - (batch - run.first_batch) * run.full);
}

std::vector<StagePtr> stages_on_batches(const Combination* combined, const std::vector<StagePtr>& stages) {
  std::vector<StagePtr> all;
  if (combined != nullptr) {
    auto numbers = std::make_shared<const Combination>(of_batch_numbers(*combined));
    all.push_back(std::make_shared<const CombineStage>(std::move(numbers)));
  }
  all.insert(all.end(), stages.begin(), stages.end());
  return all;
}

}  // namespace headrace
