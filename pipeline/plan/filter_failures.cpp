#include "headrace/pipeline/plan/filter_failures.h"

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

FilterFailures FilterFailures::of(const std::vector<StagePtr>& index_stages) {
  FilterFailures all;
  for (const StagePtr& stage : index_stages) stage->add_failures(all);
  return all;
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
