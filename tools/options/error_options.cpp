#include "headrace/tools/options/error_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

std::string treatment_of(std::uint64_t bad, OnError on_error) {
  const bool one = bad == 1;
  if (on_error == OnError::kSkip) return one ? "was bad and was skipped" : "were bad and were skipped";
  return one ? "was bad and was replaced by another" : "were bad and were replaced by others";
}

std::string location_of(const BadRecord& bad) {
  std::string text = fmt::format("{} record {}", bad.source, with_commas(bad.record));
  if (bad.offset != DataLocation::kUnknown) text += fmt::format(", byte offset {}", bad.offset);
  return text;
}

}  // namespace

void ErrorOptions::add_to(CLI::App& command, bool substitutes) {
  add_field(command, *this, {.field = "on_error", .choices = substitutes ? 3U : 2U});
  share_ = add_field(command, *this, {.field = "max_bad_share", .range = {.min = 0, .max = 1}});
  add_field(command, *this, {.field = "quarantine"});
}

ErrorPolicy ErrorOptions::policy() const {
  if (on_error == OnError::kFail && share_ != nullptr && share_->count() > 0) {
    throw ConfigError("--max-bad-share changes nothing: with --on-error fail the first bad record ends the run",
                      "give --on-error skip, too, or leave it out");
  }
  return *this;
}

std::string ErrorOptions::text() const {
  const BadRecordTally::Count count = tally->count();
  return count.bad == 0 ? std::string() : describe(count, on_error, quarantine);
}

void ErrorOptions::report() const {
  if (const std::string line = text(); !line.empty()) print(stderr, "headrace: {}\n", line);
}

std::string describe(const BadRecordTally::Count& count, OnError on_error,
                     const std::filesystem::path& quarantine) {
  return fmt::format(
      "{} of {} {}; first: {}: {} ({})", with_commas(count.bad), count_of(count.records, "record"),
      treatment_of(count.bad, on_error), location_of(*count.first), headrace::describe(*count.first),
      quarantine.empty() ? "--quarantine FILE lists them all" : "all are listed in " + quarantine.string());
}

}  // namespace headrace::tools
