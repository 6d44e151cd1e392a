#include "headrace/pipeline/plan/scan/filter_failures.h"

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

FilterFailures FilterFailures::of(const std::vector<Stage>& index_stages) {
  FilterFailures all;
  for (const Stage& stage : index_stages) {
    if (const auto* filter = std::get_if<FilterStage>(&stage)) {
      for (const auto& [record, failure] : filter->selection->filter_failures().failures_)
        all.add(record, failure);
    } else if (const auto* bucket = std::get_if<BucketStage>(&stage)) {
      for (const auto& [record, failure] : bucket->buckets->scan().failures.failures_) all.add(record, failure);
    } else if (const auto* combine = std::get_if<CombineStage>(&stage)) {
      const auto* unbatch = std::get_if<UnbatchRows>(&combine->combination->how);
      const std::uint64_t rows = unbatch != nullptr ? unbatch->rows : 1;
      for (const CombinedPart& part : combine->combination->parts) all.add_part(part, rows);
    }
  }
  return all;
}

// Each record of the part has become `rows` of the combination's.
void FilterFailures::add_part(const CombinedPart& part, std::uint64_t rows) {
  for (const auto& [record, failure] : of(part.stages).failures_) {
    for (std::uint64_t row = 0; row < rows; ++row) add(part.first_record + record * rows + row, failure);
  }
}

void FilterFailures::look_up(std::uint64_t record) const {
  const auto found = failures_.find(record);
  if (found != failures_.end()) throw FilterError(found->second);
}

std::uint64_t FilterFailures::mixed_into(std::uint64_t identity) const noexcept {
  for (const auto& [record, failure] : failures_) identity = mix_seed(identity, record);
  return identity;
}

}  // namespace headrace
