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
using headrace::c::given;
using headrace::c::guarded;

hr_status hr_dataset_combine(const char* how, const char* options, const hr_dataset* const* parts, size_t count,
                             hr_dataset** dataset) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(
        headrace::combine(&given(how, "how"), headrace::c::parts_of(parts, count), headrace::c::text_of(options)));
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
