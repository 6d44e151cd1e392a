// Operations of a plan's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/plan/json/json_place.h"

namespace headrace::plan_json {

// Returns {"flip": {...}}; `path` is the place of the object. Throws ConfigError if it is code that `parts` do not
// hold.
nlohmann::ordered_json write_operation(const Operation& operation, const PlanParts& parts,
                                       const std::string& path);
// Returns the operation of such an object. Throws PlaceError if there is none.
Operation read_operation(const JsonPlace& place, const PlanOptions& plan);

}  // namespace headrace::plan_json
