// Plans: made from a source, and stages added to them.
#include "headrace/pipeline/dataset.h"

#include <cstddef>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

// Runs the body of a function that replaces the plan with the result of `with_stage`.
template <typename WithStage>
hr_status add_stage(const char* function, hr_dataset* dataset, const WithStage& with_stage) noexcept {
  return guarded(function, [&] {
    hr_dataset& changed = given(dataset, "dataset");
    changed.plan = with_stage(changed.plan);
  });
}

Operations chain_of(const hr_operations* chain) {
  const std::vector<Operation>& list = given(chain, "chain").list;
  if (list.empty())
    throw ConfigError("hr_dataset_map: the chain has no operations", "add some with hr_operations_add()");
  Operations all = list.front();
  for (std::size_t i = 1; i < list.size(); ++i) all = std::move(all) | Operations(list[i]);
  return all;
}

}  // namespace
}  // namespace headrace::c

using headrace::Dataset;
using headrace::c::add_stage;
using headrace::c::given;
using headrace::c::guarded;

hr_status hr_dataset_from(const hr_source* source, hr_dataset** dataset) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(Dataset::from(given(source, "source").source));
  });
}

hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(copy, "copy");
    result = new hr_dataset(given(dataset, "dataset").plan);
  });
}

void hr_dataset_free(hr_dataset* dataset) { delete dataset; }

hr_status hr_dataset_add(hr_dataset* dataset, const char* stage, const char* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    return plan.with_stage(&given(stage, "stage"), headrace::c::text_of(options));
  });
}

hr_status hr_dataset_map(hr_dataset* dataset, const hr_operations* chain) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.map(headrace::c::chain_of(chain)); });
}

hr_status hr_dataset_cache(hr_dataset* dataset, const hr_cache* cache) {
  return add_stage(__func__, dataset,
                   [&](const Dataset& plan) { return plan.cache(given(cache, "cache").cache); });
}
