// Plans: their stages, combinations, texts and descriptions, and what is said of their data.
#include "headrace/pipeline/dataset.h"

#include <optional>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/pipeline/option_json.h"

namespace headrace::c {
namespace {

const PlanParts& parts_of(const hr_parts* parts) {
  static const PlanParts none;
  return parts != nullptr ? parts->parts : none;
}

// Returns a string that lives as long as the dataset.
const char* kept_by(const hr_dataset& dataset, const std::string& text) {
  const std::lock_guard lock(dataset.mutex);
  return dataset.texts.insert(text).first->c_str();
}

// Returns 0 if there are no batches yet.
std::int64_t batch_of(const Dataset& plan) {
  try {
    return plan.global_batch();
  } catch (const ConfigError&) {
    return 0;
  }
}

// Returns what the source has that is no record, and no field.
std::string left_out_of(const SourceInfo& source) {
  std::string left_out = describe(source.left_out);
  const std::string columns = describe(source.columns);
  if (!left_out.empty() && !columns.empty()) left_out += "; ";
  return left_out + columns;
}

hr_dataset_info info_of(const hr_dataset& dataset) {
  const Dataset& plan = dataset.plan;
  const SourcePtr source = plan.source();
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  info.streamed = plan.streamed();
  info.records = info.streamed ? HR_UNKNOWN : plan.size();
  info.global_batch = batch_of(plan);
  info.steps_per_epoch = info.streamed || info.global_batch == 0 ? HR_UNKNOWN : plan.steps_per_epoch();
  info.fingerprint = plan.fingerprint();
  info.field_count = plan.fields().size();
  info.class_count = plan.classes().size();
  info.resident = source->info().resident;
  info.label_count = source->info().label_count;
  info.name = kept_by(dataset, source->info().name);
  info.format = kept_by(dataset, source->format());
  info.left_out = kept_by(dataset, left_out_of(source->info()));
  info.reading = kept_by(dataset, plan.reading());
  return info;
}

Json json_of(const BadRecord& bad) {
  Json json{{"source", bad.source}, {"record", bad.record}, {"name", bad.name}};
  if (bad.offset != DataLocation::kUnknown) json["offset"] = bad.offset;
  json["operation"] = bad.operation;
  json["cause"] = bad.cause;
  json["code"] = to_string(bad.code);
  return json;
}

Json json_of(const std::vector<BadRecord>& listed) {
  Json list = Json::array();
  for (const BadRecord& bad : listed) list.push_back(json_of(bad));
  return list;
}

Json json_of(const Inspection::Range& range) { return {{"min", range.min}, {"max", range.max}}; }

Json json_of(const Inspection& found) {
  Json labels = Json::object(), columns = Json::array();
  for (const auto& [label, records] : found.labels) labels[std::to_string(label)] = records;
  for (const SourceColumn& column : found.columns)
    columns.push_back({{"name", column.name}, {"holds", column.holds}, {"field", column.field}});
  return {{"records", found.records},
          {"examined", found.examined},
          {"bytes", found.bytes},
          {"height", json_of(found.height)},
          {"width", json_of(found.width)},
          {"labels", std::move(labels)},
          {"labelled", found.labelled},
          {"bad", found.bad},
          {"first_bad", json_of(found.first_bad)},
          {"warned", found.warned},
          {"first_warned", json_of(found.first_warned)},
          {"oriented", found.oriented},
          {"columns", std::move(columns)}};
}

// This thread's poll; none before the first call.
thread_local std::optional<ScanPoll> scan_poll;

void set_scan_poll(hr_status (*look)(void* user), std::shared_ptr<void> user) {
  scan_poll.reset();
  if (look == nullptr) return;
  scan_poll.emplace([look, user = std::move(user)] { call_back("look", [&] { return look(user.get()); }); });
}

}  // namespace
}  // namespace headrace::c

using headrace::Dataset;
using headrace::c::give_text;
using headrace::c::given;
using headrace::c::guarded;
using headrace::c::owned_text;
using headrace::c::parts_of;
using headrace::c::text_of;

hr_status hr_dataset_from_json(const char* json, const char* options, const hr_parts* parts,
                               hr_dataset** dataset) {
  return guarded(__func__, [&] {
    headrace::PlanOptions how{.parts = parts_of(parts)};
    headrace::set_from_json(text_of(options), "options of a plan", [&](headrace::OptionVisitor& visit) {
      visit("base", how.base);
      visit("allow_paths", how.allow_paths);
      visit("global_batch", how.global_batch);
    });
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(Dataset::from_json(&given(json, "json"), how));
  });
}

hr_status hr_dataset_to_json(const hr_dataset* dataset, const hr_parts* parts, char** json) {
  return give_text(__func__, json, "json",
                   [&] { return given(dataset, "dataset").plan.to_json(parts_of(parts)); });
}

hr_status hr_dataset_combine(const char* how, const char* options, const hr_dataset* const* datasets, size_t count,
                             hr_dataset** dataset) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(dataset, "dataset");
    const std::string named = &given(how, "how");
    std::vector<Dataset> list;
    for (std::size_t i = 0; i < count; ++i)
      list.push_back(given((&given(datasets, "datasets"))[i], "datasets").plan);
    result = new hr_dataset(headrace::combine(named, list, text_of(options)));
  });
}

hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(copy, "copy");
    const hr_dataset& from = given(dataset, "dataset");
    result = new hr_dataset(from.plan, !from.has_stages);
  });
}

void hr_dataset_free(hr_dataset* dataset) { delete dataset; }

hr_status hr_dataset_add(hr_dataset* dataset, const char* stage, const char* options, const hr_parts* parts) {
  return guarded(__func__, [&] {
    hr_dataset& changed = given(dataset, "dataset");
    changed.plan = changed.plan.with_stage(&given(stage, "stage"), text_of(options), parts_of(parts));
    changed.has_stages = true;
  });
}

hr_status hr_dataset_describe(const hr_dataset* dataset, hr_dataset_info* info) {
  return guarded(__func__, [&] {
    headrace::c::write_struct(info, headrace::c::info_of(given(dataset, "dataset")), "hr_dataset_info",
                              "HR_DATASET_INFO_INIT");
  });
}

hr_status hr_dataset_field(const hr_dataset* dataset, size_t index, hr_field* field) {
  return guarded(__func__, [&] {
    const hr_dataset& of = given(dataset, "dataset");
    hr_field& result = given(field, "field");
    const headrace::Fields fields = of.plan.fields();
    headrace::c::check_index(index, fields.size(), "field");
    result = headrace::c::describe(fields[index], headrace::c::kept_by(of, fields[index].name));
  });
}

hr_status hr_dataset_class(const hr_dataset* dataset, size_t index, const char** name) {
  return guarded(__func__, [&] {
    const hr_dataset& of = given(dataset, "dataset");
    const char*& result = given(name, "name");
    const std::vector<std::string> classes = of.plan.classes();
    headrace::c::check_index(index, classes.size(), "class");
    result = headrace::c::kept_by(of, classes[index]);
  });
}

hr_status hr_dataset_explain(const hr_dataset* dataset, const hr_devices* devices, char** text) {
  return give_text(__func__, text, "text", [&] {
    const Dataset& plan = given(dataset, "dataset").plan;
    return devices != nullptr ? plan.explain(*devices->group) : plan.explain();
  });
}

hr_status hr_dataset_inspect(const hr_dataset* dataset, const char* options, char** json) {
  return give_text(__func__, json, "json", [&] {
    const Dataset& plan = given(dataset, "dataset").plan;
    const auto how =
        headrace::options_from_json<headrace::InspectOptions>(text_of(options), "options of an inspection");
    return headrace::c::json_of(headrace::inspect_source(plan.source(), how));
  });
}

hr_status hr_set_scan_poll(hr_status (*look)(void* user), hr_user user) {
  const bool in_callback = *headrace::c::current_function != '\0';
  return guarded(__func__, [&] {
    std::shared_ptr<void> shared = headrace::c::share(user);
    if (in_callback) {
      throw headrace::ConfigError("hr_set_scan_poll was called by a callback",
                                  "set it before the call that waits");
    }
    headrace::c::set_scan_poll(look, std::move(shared));
  });
}

hr_status hr_tally_create(hr_tally** tally) {
  return guarded(__func__, [&] {
    hr_tally*& result = given(tally, "tally");
    result = new hr_tally;
  });
}

hr_status hr_tally_read(const hr_tally* tally, char** json) {
  return give_text(__func__, json, "json", [&] {
    const headrace::BadRecordTally::Count now = given(tally, "tally").tally->count();
    headrace::c::Json count{{"bad", now.bad}, {"records", now.records}, {"first", nullptr}};
    if (now.first) count["first"] = headrace::c::json_of(*now.first);
    return count;
  });
}

void hr_tally_free(hr_tally* tally) { delete tally; }

hr_status hr_convert(const char* data, const char* to, const char* options, hr_tally* tally, char** json) {
  return guarded(__func__, [&] {
    auto how = headrace::options_from_json<headrace::ConvertOptions>(text_of(options), "options of a conversion");
    how.errors.tally = headrace::c::share(tally);
    const headrace::ConvertResult done = headrace::convert_dataset(&given(data, "data"), &given(to, "to"), how);
    if (json == nullptr) return;
    *json = owned_text(headrace::c::Json{{"records", done.records},
                                         {"bytes", done.bytes},
                                         {"shards", done.shards},
                                         {"bad_records", done.bad_records},
                                         {"reading", done.reading}});
  });
}
