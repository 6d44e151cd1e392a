// One file that records are written to, whatever its format.
#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/pipeline/record.h"

namespace headrace {

// Not thread-safe. No file exists under its final name before finish().
class RecordOutput {
 public:
  RecordOutput() = default;
  virtual ~RecordOutput() = default;
  RecordOutput(const RecordOutput&) = delete;
  RecordOutput& operator=(const RecordOutput&) = delete;

  // Appends the next record. Throws DataError for one that is not of the file's fields. `name`: its own; empty:
  // none.
  virtual void append(const RecordView& record, std::string_view name) = 0;
  // Finishes the file and returns its bytes.
  virtual std::uint64_t finish() = 0;
};

}  // namespace headrace
