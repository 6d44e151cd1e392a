#include "headrace/pipeline/engine/quarantine.h"

#include <nlohmann/json.hpp>

#include "headrace/devices/base/file.h"

namespace headrace {

Quarantine::Quarantine(const std::filesystem::path& path) : path_(path) { append_to_file(path_, {}); }

void Quarantine::add(const BadRecord& bad, OnError action, const std::optional<BatchPosition>& at) {
  append(bad, at, to_string(action), false);
}

void Quarantine::add_warning(const BadRecord& warned, const BatchPosition& at) {
  append(warned, at, "used", true);
}

void Quarantine::append(const BadRecord& bad, const std::optional<BatchPosition>& at, const char* action,
                        bool warning) {
  if (!listed_.insert(bad.record).second) return;
  nlohmann::ordered_json line = {{"source", bad.source}, {"record", bad.record}, {"name", bad.name}};
  if (bad.offset != DataLocation::kUnknown) line["offset"] = bad.offset;
  line["operation"] = bad.operation;
  line["cause"] = bad.cause;
  line["code"] = to_string(bad.code);
  if (at) line["epoch"] = at->epoch;
  if (at) line["step"] = at->step;
  line["action"] = action;
  if (warning) line["warning"] = true;
  if (bad.substitute) line["substitute"] = *bad.substitute;
  // Names of files need not be UTF-8.
  append_to_file(path_, line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace headrace
