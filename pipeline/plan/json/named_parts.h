// Code that a plan's JSON names: found among the caller's parts, written as a name and read as the part.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/json/json_place.h"

namespace headrace::plan_json {

inline constexpr const char* kNamed = "named";

// Returns {"named": ..., ...}. Throws ConfigError, naming `path`, if the parts do not hold the object.
nlohmann::ordered_json write_named(const SourcePtr& source, const PlanParts& parts, const std::string& path);
nlohmann::ordered_json write_named(const Operation& operation, const PlanParts& parts, const std::string& path);
nlohmann::ordered_json write_named(const RecordFilter& filter, const PlanParts& parts, const std::string& path);

// Returns the part that such an object names. Throws PlaceError if there is none, or its version or fingerprint
// differs.
SourcePtr named_source(const JsonPlace& object, const PlanParts& parts);
Operation named_operation(const JsonPlace& object, const PlanParts& parts);
RecordFilter named_filter(const JsonPlace& object, const PlanParts& parts);

}  // namespace headrace::plan_json
