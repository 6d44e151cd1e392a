// Plans as text, and the code that they refer to.
#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"
#include "headrace/pipeline/dataset.h"

namespace headrace::c {
namespace {

PlanParts plan_parts_of(const hr_plan_options& options) {
  PlanParts parts;
  for (std::size_t i = 0; i < options.source_count; ++i) {
    const hr_named_source& named = (&given(options.sources, "sources"))[i];
    parts.sources[&given(named.name, "sources.name")] = given(named.source, "sources.source").source;
  }
  if (options.operations != nullptr) {
    for (const Operation& operation : options.operations->list) parts.operations.emplace_back(operation);
  }
  for (std::size_t i = 0; i < options.filter_count; ++i) {
    parts.filters.push_back(given((&given(options.filters, "filters"))[i], "filters").filter);
  }
  return parts;
}

hr_plan_options read_plan_options(const hr_plan_options* options) {
  return HR_READ(hr_plan_options, HR_PLAN_OPTIONS_INIT, options);
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_dataset_to_json(const hr_dataset* dataset, const hr_plan_options* options, char** json) {
  return guarded(__func__, [&] {
    const auto how = headrace::c::read_plan_options(options);
    char*& result = given(json, "json");
    const headrace::Dataset& plan = given(dataset, "dataset").plan;
    result = headrace::c::owned_text(plan.to_json(headrace::c::plan_parts_of(how)));
  });
}

hr_status hr_dataset_from_json(const char* json, const hr_plan_options* options, hr_dataset** dataset) {
  return guarded(__func__, [&] {
    const auto how = headrace::c::read_plan_options(options);
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(
        headrace::Dataset::from_json(&given(json, "json"), {.parts = headrace::c::plan_parts_of(how),
                                                            .base = headrace::c::text_of(how.base),
                                                            .allow_paths = !how.refuse_paths}));
  });
}
