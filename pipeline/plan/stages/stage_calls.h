// The stages that a plan's JSON names: a row from the file of each.
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/json/json_place.h"
#include "headrace/pipeline/plan/json/option_reader.h"

namespace headrace {

// Options of a stage, for the page of parts.
struct ShownOptions {
  const char* label;  // "cache: disk"
  void (*visit)(OptionVisitor& visit);
};

struct StageCall {
  const char* name;
  std::vector<ShownOptions> options = {};
  std::vector<std::string> required = {};  // options that have no default
  // Returns the dataset with the stage, whose options `place` holds. Throws PlaceError, or as the call does.
  Dataset (*read)(const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                  const plan_json::Members& members);
};

template <typename Options>
ShownOptions shown_options(const char* label) {
  return {.label = label, .visit = [](OptionVisitor& visit) { Options().each_field(visit); }};
}

// Returns the row of a stage whose call takes a struct: `kAdd(before, options)`.
template <typename Options, auto kAdd>
StageCall stage_call(const char* name, std::vector<std::string> required = {}) {
  return {.name = name,
          .options = {shown_options<Options>(name)},
          .required = std::move(required),
          .read = [](const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                     const plan_json::Members& members) {
            return kAdd(before, plan_json::read<Options>(place, plan, members));
          }};
}

// Returns all rows, by name.
const std::vector<StageCall>& stage_calls();

}  // namespace headrace
