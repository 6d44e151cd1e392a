// What lies in a source: a pass over its records for people who want to know what was recognised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/source.h"

namespace HEADRACE_API headrace {

struct InspectOptions {
  // So many records, evenly spread, are read and their images decoded; 0: all.
  std::uint64_t max_examined = 0;
  std::size_t max_listed = 5;  // bad records, and as many that have a warning
};

struct Inspection {
  struct Range {
    std::int64_t min = 0, max = 0;
    // Takes in a value; the first one is both ends.
    void add(std::int64_t value, bool first) noexcept;
  };

  std::uint64_t records = 0;
  std::uint64_t examined = 0;
  std::uint64_t bytes = 0;  // of the fields of those examined, as they are stored
  Range height, width;      // of the images that could be decoded; 0 where there are none
  // How many records have a label: of all where it is known without reading them, else of those examined.
  std::map<std::int64_t, std::uint64_t> labels;
  std::uint64_t labelled = 0;           // the sum of these
  std::uint64_t bad = 0;                // of those examined
  std::vector<BadRecord> first_bad;     // in the order of the records
  std::uint64_t warned = 0;             // of those examined: damaged in a way that changes no pixel
  std::vector<BadRecord> first_warned;  // in the order of the records
  std::vector<SourceColumn> columns;    // as in SourceInfo: taken and left out
  std::uint64_t oriented = 0;  // images of those examined whose EXIF data say that they are stored another way up
};

// A record is bad where it cannot be read or decoded or where its label is none of the source's classes: what a
// stream of whole decoded images would say. Threads of its own read and decode. Throws what no record is to
// blame for, such as running out of memory.
Inspection inspect_source(const SourcePtr& source, const InspectOptions& options = {});

}  // namespace headrace
