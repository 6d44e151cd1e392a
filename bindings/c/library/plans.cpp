// Combinations of plans, and descriptions of plans.
#include <algorithm>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"
#include "headrace/pipeline/dataset.h"

namespace headrace::c {
namespace {

std::vector<Dataset> parts_of(const hr_dataset* const* parts, std::size_t count) {
  std::vector<Dataset> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(given((&given(parts, "parts"))[i], "parts").plan);
  return list;
}

// Runs the body of a function that combines several plans.
template <typename Combine>
hr_status combine_parts(const char* function, const hr_dataset* const* parts, std::size_t count,
                        hr_dataset** dataset, const Combine& combine) noexcept {
  return guarded(function, [&] {
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(combine(parts_of(parts, count)));
  });
}

// Returns a string that lives as long as the dataset.
const char* named_by(const hr_dataset& dataset, const std::string& name) {
  const std::lock_guard lock(dataset.mutex);
  return dataset.names.insert(name).first->c_str();
}

// Returns 0 if there are no batches yet.
std::int64_t batch_of(const Dataset& plan) {
  try {
    return plan.global_batch();
  } catch (const ConfigError&) {
    return 0;
  }
}

}  // namespace
}  // namespace headrace::c

using headrace::Dataset;
using headrace::c::combine_parts;
using headrace::c::given;
using headrace::c::guarded;

hr_status hr_dataset_concatenate(const hr_dataset* const* parts, size_t count, hr_dataset** dataset) {
  return combine_parts(__func__, parts, count, dataset,
                       [](const std::vector<Dataset>& list) { return headrace::concatenate(list); });
}

hr_status hr_dataset_interleave(const hr_dataset* const* parts, size_t count, uint64_t block,
                                hr_dataset** dataset) {
  return combine_parts(__func__, parts, count, dataset, [&](const std::vector<Dataset>& list) {
    return headrace::interleave(list, {.block = block});
  });
}

hr_status hr_dataset_mix(const hr_dataset* const* parts, size_t count, const hr_mix_options* options,
                         hr_dataset** dataset) {
  return combine_parts(__func__, parts, count, dataset, [&](const std::vector<Dataset>& list) {
    const auto how = HR_READ(hr_mix_options, HR_MIX_OPTIONS_INIT, options);
    headrace::MixOptions mixing{
        .seed = how.seed, .end = how.until_all_seen ? headrace::MixEnd::kAllSeen : headrace::MixEnd::kFirstEnds};
    if (how.weights != nullptr) mixing.weights.assign(how.weights, how.weights + count);
    return headrace::mix(list, std::move(mixing));
  });
}

hr_status hr_dataset_zip(const hr_dataset* const* parts, size_t count, const char* const* suffixes, bool strict,
                         hr_dataset** dataset) {
  return combine_parts(__func__, parts, count, dataset, [&](const std::vector<Dataset>& list) {
    headrace::ZipOptions zipping{.strict = strict};
    if (suffixes != nullptr) zipping.suffixes = headrace::c::texts_of(suffixes, count, "suffixes");
    return headrace::zip(list, std::move(zipping));
  });
}

hr_status hr_dataset_describe(const hr_dataset* dataset, hr_dataset_info* info) {
  return guarded(__func__, [&] {
    const Dataset& plan = given(dataset, "dataset").plan;
    hr_dataset_info answer = HR_DATASET_INFO_INIT;
    answer.streamed = plan.streamed();
    answer.records = answer.streamed ? HR_UNKNOWN : plan.size();
    answer.global_batch = headrace::c::batch_of(plan);
    answer.steps_per_epoch = answer.streamed || answer.global_batch == 0 ? HR_UNKNOWN : plan.steps_per_epoch();
    answer.fingerprint = plan.fingerprint();
    answer.field_count = plan.fields().size();
    answer.class_count = plan.classes().size();
    headrace::c::write_struct(info, answer, "hr_dataset_info", "HR_DATASET_INFO_INIT");
  });
}

hr_status hr_dataset_field(const hr_dataset* dataset, size_t index, hr_field* field) {
  return guarded(__func__, [&] {
    const hr_dataset& of = given(dataset, "dataset");
    hr_field& result = given(field, "field");
    const headrace::Fields fields = of.plan.fields();
    headrace::c::check_index(index, fields.size(), "field");
    result = headrace::c::describe(fields[index], headrace::c::named_by(of, fields[index].name));
  });
}

hr_status hr_dataset_class(const hr_dataset* dataset, size_t index, const char** name) {
  return guarded(__func__, [&] {
    const hr_dataset& of = given(dataset, "dataset");
    const char*& result = given(name, "name");
    const std::vector<std::string> classes = of.plan.classes();
    headrace::c::check_index(index, classes.size(), "class");
    result = headrace::c::named_by(of, classes[index]);
  });
}

hr_status hr_dataset_explain(const hr_dataset* dataset, const hr_devices* devices, char** text) {
  return guarded(__func__, [&] {
    const Dataset& plan = given(dataset, "dataset").plan;
    char*& result = given(text, "text");
    result = headrace::c::owned_text(devices != nullptr ? plan.explain(*devices->group) : plan.explain());
  });
}
