#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/option_json.h"
#include "headrace/pipeline/plan/json/format.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/json/operation_json.h"
#include "headrace/pipeline/plan/json/option_reader.h"
#include "headrace/pipeline/plan/json/parse.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace plan_json {
namespace {

// A ConfigError of the call becomes one that names the place.
template <typename Call>
auto at_place(const JsonPlace& place, const Call& call) {
  try {
    return call();
  } catch (const PlaceError&) {
    throw;
  } catch (const ConfigError& error) {
    place.refuse(error.message(), error.hint());
  }
}

Dataset read_stage(const Dataset& before, const JsonPlace& place, const PlanOptions& plan) {
  const std::string name = place.only_name("a stage");
  const auto found = std::ranges::find(stage_calls(), name, &StageCall::name);
  if (found == stage_calls().end()) {
    std::vector<std::string> known;
    for (const StageCall& call : stage_calls()) known.emplace_back(call.name);
    place.refuse(fmt::format("there is no stage {}{}", in_quotes(name), did_you_mean(name, known)),
                 "write " + one_of(known));
  }
  return found->read(before, place.member(name), plan, {.required = found->required});
}

const std::vector<std::string> kCombinations{"concatenate", "interleave", "mix", "zip"};

// `plan` is for options; the object may have the others. REQUIRES: `name` is one of kCombinations.
Dataset read_combination(std::string_view name, const std::vector<Dataset>& parts, const JsonPlace& object,
                         const PlanOptions& plan, const Members& members) {
  return at_place(object, [&] {
    if (name == "interleave") return interleave(parts, read<InterleaveOptions>(object, plan, members));
    if (name == "mix") return mix(parts, read<MixOptions>(object, plan, members));
    if (name == "zip") return zip(parts, read<ZipOptions>(object, plan, members));
    read<NoOptions>(object, plan, members);
    return concatenate(parts);
  });
}

// {`name`: `options`}, of which nothing stands for an object without members.
nlohmann::json stage_object(std::string_view name, std::string_view options) {
  return {{std::string(name), options.empty() ? nlohmann::json::object() : parse(options)}};
}

// {`as`: the other options with the path}
nlohmann::json source_object(const std::filesystem::path& path, std::string_view options) {
  nlohmann::json arguments = stage_object("open", options).at("open");
  JsonPlace(arguments).want_object();
  std::string opener = "open";
  if (const auto as = arguments.find("as"); as != arguments.end()) {
    opener = JsonPlace(arguments).member("as").text();
    arguments.erase(as);
  }
  if (!path.empty() && !arguments.emplace("path", path.string()).second)
    JsonPlace(arguments).member("path").refuse("the path is given twice", "leave one out");
  return {{opener, std::move(arguments)}};
}

// Adds stages to a dataset, and finds the one that made it invalid.
class Growth {
 public:
  Growth(JsonPlace place, Dataset source) { add(std::move(place), std::move(source)); }

  const Dataset& last() const noexcept { return grown_.back().dataset; }
  void add(JsonPlace place, Dataset dataset) {
    grown_.push_back({.place = std::move(place), .dataset = std::move(dataset)});
  }

  // PlaceError at the first stage with which the plan makes no sense.
  void want_sense() const {
    if (makes_sense(grown_.back())) return;
    const auto wrong = std::ranges::partition_point(grown_, makes_sense);
    at_place(wrong->place, [&] { make_stream_plan(wrong->dataset.plan()); });
  }

 private:
  struct Grown {
    JsonPlace place;
    Dataset dataset;
  };

  static bool makes_sense(const Grown& grown) {
    try {
      make_stream_plan(grown.dataset.plan());
      return true;
    } catch (const ConfigError&) {
      return false;
    }
  }

  std::vector<Grown> grown_;
};

class PlanReader {
 public:
  explicit PlanReader(const PlanOptions& plan) : plan_(plan), as_written_(plan) { as_written_.global_batch = 0; }

  // {"source": ..., "stages": [...]}
  Dataset dataset(const JsonPlace& place, const std::vector<std::string>& others = {}) {
    std::vector<std::string> known{"source", "stages"};
    known.insert(known.end(), others.begin(), others.end());
    place.want_only(known);
    if (!place.has("source")) place.refuse("'source' is missing", "say which data the plan begins with");
    const JsonPlace from = place.member("source");
    std::vector<JsonPlace> items;
    if (place.has("stages")) items = place.member("stages").items();
    Growth growth(from, plan_.data != nullptr ? Dataset::from(plan_.data) : source_of(from, items));
    for (auto at = items.begin(); at != items.end(); ++at) {
      const JsonPlace& item = *at;
      if (++stages_ > kMaxStages) item.refuse(fmt::format("the plan has more than {} stages", kMaxStages));
      if (is_decoded(item)) continue;
      try {
        const bool undone = undone_ || std::any_of(at + 1, items.end(), is_unbatch);
        growth.add(item, read_stage(growth.last(), item, undone ? as_written_ : plan_));
      } catch (const PlaceError&) {
        throw;
      } catch (const ConfigError& error) {
        growth.want_sense();  // an earlier stage may be to blame
        item.refuse(error.message(), error.hint());
      }
    }
    growth.want_sense();
    return growth.last();
  }

  // {"open": {...}}
  Dataset source(const JsonPlace& place) {
    if (place.has(kNamed)) return Dataset::from(named_source(place, plan_.parts));
    const std::string name = place.only_name("a source");
    if (std::ranges::find(kCombinations, name) != kCombinations.end())
      return combination(name, place.member(name));
    const SourceOriginPtr origin = find_source_origin(name);
    if (origin == nullptr) {
      std::vector<std::string> known{kNamed};
      known.insert(known.end(), kCombinations.begin(), kCombinations.end());
      for (const SourceOriginPtr& one : source_origins()) known.emplace_back(one->name());
      place.refuse(fmt::format("there is no source {}{}", in_quotes(name), did_you_mean(name, known)),
                   "write " + one_of(known));
    }
    const JsonPlace object = place.member(name);
    want_options(object, [&](OptionVisitor& visit) { origin->visit_arguments(visit); });
    OptionReader reader(object, plan_);
    return at_place(object, [&] { return Dataset::from(origin->open(reader)); });
  }

 private:
  static bool is_unbatch(const JsonPlace& stage) { return stage.has("unbatch"); }

  // A source before these stages, which may undo the batches of its parts.
  Dataset source_of(const JsonPlace& place, const std::vector<JsonPlace>& stages) {
    const bool outside = std::exchange(undone_, undone_ || std::ranges::any_of(stages, is_unbatch));
    Dataset made = source(place);
    undone_ = outside;
    return made;
  }

  // A decode() of images that PlanOptions::data holds as pixels.
  bool is_decoded(const JsonPlace& stage) const {
    if (plan_.data == nullptr || stage.only_name("a stage") != "decode") return false;
    return std::ranges::none_of(plan_.data->info().fields,
                                [](const Field& field) { return field.encoding == Encoding::kImage; });
  }

  Dataset combination(const std::string& name, const JsonPlace& object) {
    object.want_object();
    if (!object.has("parts")) object.refuse("'parts' is missing");
    std::vector<Dataset> parts;
    for (const JsonPlace& item : object.member("parts").items()) parts.push_back(dataset(item));
    return read_combination(name, parts, object, plan_, {.others = {"parts"}});
  }

  const PlanOptions& plan_;
  PlanOptions as_written_;  // with the batches of the plan: for those that unbatch() undoes
  bool undone_ = false;     // whether an unbatch() follows the combination that is read
  std::size_t stages_ = 0;
};

void want_version(const JsonPlace& plan) {
  if (!plan.has(kVersionName))
    plan.refuse(fmt::format("'{}' is missing: this is no plan", kVersionName), what_a_plan_is());
  const JsonPlace version = plan.member(kVersionName);
  if (version.value().is_number_unsigned() && version.value().get<std::uint64_t>() == kVersion) return;
  version.refuse(
      fmt::format("version {} of the format; this Headrace reads version {}", version.shown(), kVersion),
      "read it with the Headrace that wrote it, or a newer one");
}

}  // namespace
}  // namespace plan_json

Dataset Dataset::from_json(std::string_view text, const PlanOptions& options) {
  const nlohmann::json json = plan_json::parse(text);
  const plan_json::JsonPlace plan(json);
  plan.want_object();
  plan_json::want_version(plan);
  return plan_json::PlanReader(options).dataset(plan, {plan_json::kVersionName});
}

Dataset open_dataset(const std::filesystem::path& path, std::string_view options) {
  const nlohmann::json json = plan_json::source_object(path, options);
  const PlanOptions any_path;
  return plan_json::PlanReader(any_path).source(plan_json::JsonPlace(json));
}

Dataset Dataset::with_stage(std::string_view name, std::string_view options, const PlanParts& parts) const {
  const nlohmann::json json = plan_json::stage_object(name, options);
  return plan_json::read_stage(*this, plan_json::JsonPlace(json), {.parts = parts});
}

Dataset combine(std::string_view how, const std::vector<Dataset>& parts, std::string_view options) {
  const nlohmann::json json = plan_json::stage_object(how, options);
  const plan_json::JsonPlace place(json);
  if (std::ranges::find(plan_json::kCombinations, how) == plan_json::kCombinations.end()) {
    place.refuse(fmt::format("there is no combination {}", plan_json::in_quotes(how)),
                 "write " + plan_json::one_of(plan_json::kCombinations));
  }
  return plan_json::read_combination(how, parts, place.member(how), {}, {});
}

Operations operation(std::string_view name, std::string_view options) {
  const nlohmann::json json = plan_json::stage_object(name, options);
  return plan_json::read_operation(plan_json::JsonPlace(json), {});
}

}  // namespace headrace
