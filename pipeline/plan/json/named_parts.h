// Code that a plan's JSON names: found among the caller's parts, to be written as a name and read as what it is.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/json/json_place.h"

namespace headrace::plan_json {

inline constexpr const char* kNamed = "named";

// {"named": ..., ...} of what the parts hold; ConfigError, naming `path`, where they do not.
nlohmann::ordered_json write_named(const SourcePtr& source, const PlanParts& parts, const std::string& path);
nlohmann::ordered_json write_named(const Operation& operation, const PlanParts& parts, const std::string& path);
nlohmann::ordered_json write_named(const RecordFilter& filter, const PlanParts& parts, const std::string& path);

// The part that such an object names; PlaceError where there is none, or of another version or fingerprint.
SourcePtr named_source(const JsonPlace& object, const PlanParts& parts);
Operation named_operation(const JsonPlace& object, const PlanParts& parts);
RecordFilter named_filter(const JsonPlace& object, const PlanParts& parts);

}  // namespace headrace::plan_json
