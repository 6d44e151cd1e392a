// How bad records are treated: the options, and the line that a command ends with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "headrace/pipeline/bad_record.h"

namespace CLI {
class App;
}

namespace headrace::tools {

// --on-error, --max-bad-share and --quarantine.
struct ErrorOptions {
  OnError on_error = ErrorPolicy{}.on_error;
  double max_bad_share = ErrorPolicy{}.max_bad_share;
  std::filesystem::path quarantine = {};

  // `substitutes`: whether another record may stand in the place of a bad one.
  void add_to(CLI::App& command, bool substitutes = true);

  // Every policy counts into the same tally.
  ErrorPolicy policy() const;
  // Records that were bad so far, each once.
  std::uint64_t bad_records() const { return tally->count().bad; }
  // How many records were skipped or replaced, the first of them, and where all are listed; empty where there were
  // none.
  std::string text() const;
  // That line on standard error, at the end of a command. Nothing where there were none.
  void report() const;

  std::shared_ptr<BadRecordTally> tally = std::make_shared<BadRecordTally>();  // shared by copies of the options
};

// The line, without its end; `count` has at least one.
std::string describe(const BadRecordTally::Count& count, OnError on_error,
                     const std::filesystem::path& quarantine);

}  // namespace headrace::tools
