// Converts schedules to and from JSON: a number is constant, {"cosine_decay": {...}} has a form.
#include <algorithm>

#include "headrace/train/optimizers/optimizer_json.h"

namespace headrace::optimizer_json {
namespace {

struct FormWriter {
  Json operator()(const schedules::Constant& form) const { return number(form.rate); }
  Json operator()(const schedules::Decay& form) const {
    return {{form.cosine ? "cosine_decay" : "linear_decay", write_fields(form.options)}};
  }
  Json operator()(const PiecewiseOptions& form) const { return {{"piecewise", write_fields(form)}}; }
  Json operator()(const ExponentialOptions& form) const { return {{"exponential_decay", write_fields(form)}}; }
  Json operator()(const OneCycleOptions& form) const { return {{"one_cycle", write_fields(form)}}; }
  Json operator()(const schedules::WarmUp& form) const {
    return {{"warm_up", {{"steps", form.steps}, {"then", written(form.then.front())}}}};
  }
  Json operator()(const schedules::Chained& form) const {
    Json parts = Json::array();
    for (const Schedule& part : form.parts) parts.push_back(written(part));
    return {{"chained", {{"schedules", parts}, {"boundaries", form.boundaries}}}};
  }
};

const Json& required(const Json& json, const std::string& place, const char* name) {
  if (!json.contains(name)) refuse(place, std::string("'") + name + "' is missing");
  return json.at(name);
}

Schedule warm_up_from(const Json& json, const std::string& place) {
  FieldReader reader(json, place);
  std::uint64_t steps = 0;
  reader("steps", steps);
  reader.know("then");
  reader.refuse_unknown();
  return Schedule::warm_up(steps, schedule_from(required(json, place, "then"), within(place, "then")));
}

Schedule chained_from(const Json& json, const std::string& place) {
  FieldReader reader(json, place);
  std::vector<std::uint64_t> boundaries;
  reader("boundaries", boundaries);
  reader.know("schedules");
  reader.refuse_unknown();
  const Json& listed = required(json, place, "schedules");
  if (!listed.is_array()) refuse(within(place, "schedules"), "expected a list, got " + listed.dump());
  std::vector<Schedule> parts;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    parts.push_back(schedule_from(listed[i], fmt::format("{}.schedules[{}]", place, i)));
  }
  return Schedule::chained(std::move(parts), std::move(boundaries));
}

}  // namespace

Json written(const Schedule& schedule) { return std::visit(FormWriter{}, schedule.form()); }

Schedule schedule_from(const Json& json, const std::string& place) {
  if (json.is_number()) return static_cast<float>(json.get<double>());
  const auto [form, options] = choice(json, place);
  const std::string inside = within(place, form);
  if (form == "linear_decay") return Schedule::linear_decay(read_fields<DecayOptions>(options, inside));
  if (form == "cosine_decay") return Schedule::cosine_decay(read_fields<DecayOptions>(options, inside));
  if (form == "piecewise") return Schedule::piecewise(read_fields<PiecewiseOptions>(options, inside));
  if (form == "exponential_decay") {
    return Schedule::exponential_decay(read_fields<ExponentialOptions>(options, inside));
  }
  if (form == "one_cycle") return Schedule::one_cycle(read_fields<OneCycleOptions>(options, inside));
  if (form == "warm_up") return warm_up_from(options, inside);
  if (form == "chained") return chained_from(options, inside);
  refuse(place,
         "no schedule is called '" + form +
             "', there are linear_decay, cosine_decay, piecewise, exponential_decay, one_cycle, warm_up and "
             "chained");
}

}  // namespace headrace::optimizer_json
