// One file that records are written to, whatever its format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  // none. `jpeg_index`: of its image (JpegIndex::append_to()), for files that have a place for it; empty: none.
  virtual void append(const RecordView& record, std::string_view name, std::span<const std::byte> jpeg_index) = 0;
  // Finishes the file and returns its bytes.
  virtual std::uint64_t finish() = 0;
};

}  // namespace headrace
