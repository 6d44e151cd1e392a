// Inspects a source: a pass over its records that shows what was recognised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/source.h"

namespace HEADRACE_API headrace {

struct InspectOptions {
  // Maximum number of records, evenly spread, that are read and whose images are decoded; 0: all.
  std::uint64_t max_examined = 0;
  std::size_t max_listed = 5;  // of bad records, and of those with a warning
  void each_field(OptionVisitor& visit) {
    visit("max_examined", max_examined, "Maximum number of records that are read, evenly spread; 0: all.");
    visit("max_listed", max_listed, "Maximum of bad records listed, and of those with a warning.");
  }
};

struct Inspection {
  struct Range {
    std::int64_t min = 0, max = 0;
    // Extends the range to a value; the first value is both ends.
    void add(std::int64_t value, bool first) noexcept;
  };

  std::uint64_t records = 0;
  std::uint64_t examined = 0;
  std::uint64_t bytes = 0;  // of the fields of examined records, as stored
  Range height, width;      // of the images that could be decoded; 0 if there are none
  // Number of records by label: of all if known without reading them, otherwise of those examined.
  std::map<std::int64_t, std::uint64_t> labels;
  std::uint64_t labelled = 0;           // the sum of these
  std::uint64_t bad = 0;                // of those examined
  std::vector<BadRecord> first_bad;     // in the order of the records
  std::uint64_t warned = 0;             // of those examined: damaged in a way that changes no pixel
  std::vector<BadRecord> first_warned;  // in the order of the records
  std::vector<SourceColumn> columns;    // as in SourceInfo: taken and left out
  std::uint64_t oriented = 0;           // examined images stored another way up, by their EXIF data
};

// Returns the result of the pass, which reads and decodes in its own threads. A record is bad if it cannot be read
// or decoded or if its label is not a class of the source, as in a stream of whole decoded images. Throws errors
// that are no record's fault, such as running out of memory.
Inspection inspect_source(const SourcePtr& source, const InspectOptions& options = {});

// Returns the class number that the record holds in field number `field`, an i64 scalar, or what Source::label()
// says: then nothing is read. `scratch` as for Source::read(). Throws DataError if the field has another size, and
// as read() does.
std::int64_t read_label(const Source& source, std::uint64_t record, std::size_t field,
                        std::vector<std::byte>& scratch);

}  // namespace headrace
