// The file of bad records, and of those that were used though something is wrong with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <unordered_set>

#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/batch.h"

namespace headrace {

// Not thread-safe; several of them, in several processes, may share one file.
class Quarantine {
 public:
  // Makes the file where there is none, so that a path that cannot be written fails at once, as DataError.
  explicit Quarantine(const std::filesystem::path& path);

  // A line, unless the record has one. Without `at` it names no epoch and step. DataError where it cannot be
  // written.
  void add(const BadRecord& bad, OnError action, const std::optional<BatchPosition>& at = {});
  // The same of a record that was used: its action is "used", and it has "warning": true.
  void add_warning(const BadRecord& warned, const BatchPosition& at);

 private:
  void append(const BadRecord& bad, const std::optional<BatchPosition>& at, const char* action, bool warning);

  std::filesystem::path path_;
  std::unordered_set<std::uint64_t> listed_;
};

}  // namespace headrace
