// The options for bad records, and the final line of a command about them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "headrace/pipeline/bad_record.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headrace::tools {

// --on-error, --max-bad-share and --quarantine.
struct ErrorOptions : ErrorPolicy {
  ErrorOptions() { tally = std::make_shared<BadRecordTally>(); }  // shared by copies of the options

  // `substitutes`: whether another record may replace a bad one.
  void add_to(CLI::App& command, bool substitutes = true);

  // Returns the policy. All policies share one tally. Throws ConfigError if --max-bad-share is given to a run that
  // skips nothing.
  ErrorPolicy policy() const;
  // Returns the number of bad records so far, each counted once.
  std::uint64_t bad_records() const { return tally->count().bad; }
  // Returns how many records were skipped or replaced, the first of them, and where all are listed; empty if none.
  std::string text() const;
  // Prints that line on standard error, at the end of a command; nothing if there were none.
  void report() const;

 private:
  const CLI::Option* share_ = nullptr;  // --max-bad-share
};

// Returns the line without its end. REQUIRES: `count` has at least one.
std::string describe(const BadRecordTally::Count& count, OnError on_error,
                     const std::filesystem::path& quarantine);

}  // namespace headrace::tools
