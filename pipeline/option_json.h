// Options as JSON, by their names: what a program in another language hands over as a text.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/dataset.h"

namespace HEADRACE_API headrace {

using ShowOptions = std::function<void(OptionVisitor& visit)>;

// Sets the options that `show` shows from an object, `{"seed": 7, "epochs": 2}`; those left out, and all of them
// for an empty text, stay as they are. Throws ConfigError naming `whole`, a literal such as "loader options", and
// the place: "loader options at epochs: ...".
void set_from_json(std::string_view json, const char* whole, const ShowOptions& show);

// Returns the options with those of the object set.
template <typename Options>
HEADRACE_HIDDEN Options options_from_json(std::string_view json, const char* whole, Options options = {}) {
  set_from_json(json, whole, [&](OptionVisitor& visit) { show(options, visit); });
  return options;
}

// Opens what lies at `path`, recognised, or as the opener `as` of the options opens it, and returns its plan
// without stages: `{"split": "test"}`, `{"as": "tf_records", "classes": ["cat", "dog"]}`. Openers and their
// arguments are those of sources in a plan's JSON (pipeline/PLAN.md). If the path is empty, the options name the
// files, `{"as": "web_dataset", "path": ["a.tar", "b.tar"]}`. Throws ConfigError naming the place, as
// `open.split`.
Dataset open_dataset(const std::filesystem::path& path, std::string_view options = {});

}  // namespace headrace
