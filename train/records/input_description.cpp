#include "headrace/train/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/train/records/record_json.h"

namespace headrace {
namespace {

using record_json::Json;

Json view_to_json(const View& view) {
  return {{"weight", view.weight},
          {"down", view.shift.down},
          {"right", view.shift.right},
          {"mirror", view.shift.mirror}};
}

View view_from(const Json& json) {
  return {.weight = json.at("weight").get<float>(),
          .shift = {.down = json.at("down").get<int>(),
                    .right = json.at("right").get<int>(),
                    .mirror = json.at("mirror").get<bool>()}};
}

// A class has its folder's name, which need not be UTF-8 as JSON must be: such a name is escaped.
std::string as_json_holds(const std::string& name) {
  try {
    [[maybe_unused]] const std::string held = Json(name).dump();
    return name;
  } catch (const Json::exception&) {
    return printable(name);
  }
}

std::vector<std::string> as_json_holds(const std::vector<std::string>& names) {
  std::vector<std::string> held;
  std::ranges::transform(names, std::back_inserter(held),
                         [](const std::string& name) { return as_json_holds(name); });
  return held;
}

std::map<std::string, std::string> types_of(const Fields& fields) {
  std::map<std::string, std::string> types;
  for (const Field& field : fields) {
    if (field.encoding == Encoding::kImage) {
      types[field.name] = to_string(DType::kU8);
    } else if (field.shape.rank() > 0) {
      types[field.name] = to_string(field.dtype);
    }
  }
  return types;
}

// A program may have scaled or normalised its arrays before the plan began. Data of another type have not been
// through that.
void require_same_types(const InputDescription& input, const Source& source) {
  for (const auto& [name, type] : types_of(source.info().fields)) {
    const auto known = input.types.find(name);
    if (known == input.types.end() || known->second == type) continue;
    throw ConfigError(
        fmt::format("field '{}' of {} is {}, and the net was trained on data that held it as {}", name,
                    source.info().name, type, known->second),
        "give data of the same type, or a custom data set that does to these what was done to those");
  }
}

}  // namespace

InputDescription describe_input(const Dataset& data, std::vector<View> views) {
  const SourcePtr source = data.source();
  const SourceInfo& info = source->info();
  InputDescription input{.views = std::move(views),
                         .types = types_of(data.source_fields()),
                         .classes = info.classes,
                         .label_count = info.label_count};
  if (input.label_count == 0) input.label_count = info.classes.size();
  try {
    input.plan = data.evaluation_json();
    input.reason.clear();
  } catch (const ConfigError& error) {
    input.reason = error.message();
  }
  return input;
}

std::string to_json(const InputDescription& input) {
  Json json = Json::object();
  if (input.plan.empty()) {
    json["no_plan"] = as_json_holds(input.reason);
  } else {
    json["plan"] = record_json::parse(input.plan);
  }
  json["views"] = Json::array();
  for (const View& view : input.views) json["views"].push_back(view_to_json(view));
  if (!input.types.empty()) json["types"] = input.types;
  if (!input.classes.empty()) json["classes"] = as_json_holds(input.classes);
  if (input.label_count > 0) json["label_count"] = input.label_count;
  return json.dump();
}

InputDescription input_description_from_json(std::string_view text) {
  try {
    const Json json = record_json::parse(text);
    InputDescription input;
    if (json.contains("plan")) {
      input.plan = json["plan"].dump();
    } else {
      input.reason = json.at("no_plan").get<std::string>();
    }
    if (!input.plan.empty()) input.reason.clear();
    for (const Json& view : json.at("views")) input.views.push_back(view_from(view));
    if (json.contains("types")) input.types = json["types"].get<std::map<std::string, std::string>>();
    if (json.contains("classes")) input.classes = json["classes"].get<std::vector<std::string>>();
    if (json.contains("label_count")) input.label_count = json["label_count"].get<std::uint64_t>();
    return input;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("an input's description is wrong: {}", error.what()));
  }
}

void require_same_classes(const InputDescription& input, const Source& source) {
  const std::vector<std::string> classes = as_json_holds(source.info().classes);
  const std::vector<std::string> trained = as_json_holds(input.classes);
  if (trained.empty() || classes.empty() || classes == trained) return;
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(classes, trained).in1 - classes.begin());
  const auto name = [at](const std::vector<std::string>& all) {
    return at < all.size() ? "'" + all[at] + "'" : std::string("none");
  };
  throw ConfigError(
      fmt::format("{} has other classes than those that the net was trained on: label {} stands for {} "
                  "here and for {} there",
                  source.info().name, at, name(classes), name(trained)),
      "give data with the same classes, none of them missing");
}

Dataset described_dataset(const SourcePtr& source, const InputDescription& input, std::int64_t global_batch) {
  if (input.plan.empty()) {
    throw ConfigError("nothing says what the net is fed with: " + input.reason,
                      "evaluate a custom data set, with all that the training did to its images");
  }
  require_same_types(input, *source);
  return Dataset::from_json(input.plan, {.allow_paths = false, .data = source, .global_batch = global_batch});
}

}  // namespace headrace
