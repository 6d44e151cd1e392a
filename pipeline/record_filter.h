// Which records of a source take part: a predicate over what the source holds, before anything is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/field.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// A record as a filter sees it: valid during the call only.
class RawRecord {
 public:
  RawRecord(const Fields& fields, const RecordView& view) : fields_(&fields), view_(&view) {}

  // The field's bytes as the source holds them (an image is still encoded). ConfigError for an unknown name.
  std::span<const std::byte> bytes(const std::string& field) const;
  // The value of a raw scalar field of any integer type; ConfigError where it is none.
  std::int64_t integer(const std::string& field) const;
  std::int64_t label() const { return integer("label"); }

 private:
  const Fields* fields_;
  const RecordView* view_;
};

// Must be pure and thread-safe: it is called once a record, in any order, when a plan is first counted or opened.
// A record that cannot be read, or on which it throws, stays in the stream as a bad one: the error is that of the
// batch it would be in, as ErrorPolicy says. A ConfigError that it throws is nobody's record: it is thrown at
// once, and so is running out of memory.
struct RecordFilter {
  std::string name = {};
  std::uint32_t version = 1;  // part of every fingerprint: change it with the function
  std::function<bool(const RawRecord&)> keeps = {};
  // A call of it, or a read for it, that takes longer ends the pass with Error(kTimeout); 0: none does. No part of
  // a fingerprint.
  double stall_timeout_seconds = 120;
  // More records than these that cannot be read or judged end the pass with a DataError: what is known of each is
  // kept in memory, and so many are no single records' fault. No part of a fingerprint.
  std::uint64_t most_unjudged = 65536;
};

// Keeps the records whose label is one of these.
RecordFilter with_labels(std::vector<std::int64_t> labels);

// "filter(name, version 1)"
std::string describe(const RecordFilter& filter);

}  // namespace headrace
