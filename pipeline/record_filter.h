// Chooses records by what they hold: Dataset::filter().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/record.h"

namespace HEADRACE_API headrace {

// The fields of one example, as a filter sees them. Valid only during the call.
class ExampleView {
 public:
  ExampleView(const Fields& fields, const RecordView& view) : fields_(&fields), view_(&view) {}
  // `shapes` are the shapes of the fields in this record.
  ExampleView(const Fields& fields, const RecordView& view, std::span<const Shape> shapes)
      : fields_(&fields), view_(&view), shapes_(shapes) {}

  // Returns the field's bytes, as the source holds them (an image is still encoded) unless RecordFilter::processed
  // is set. Throws ConfigError if the name is unknown.
  std::span<const std::byte> bytes(const std::string& field) const;
  // Returns the field's shape in this record; for an encoded image, its number of bytes.
  Shape shape(const std::string& field) const;
  // Returns the value of a raw scalar field of any integer type. Throws ConfigError if the field is not one.
  std::int64_t integer(const std::string& field) const;
  std::int64_t label() const { return integer("label"); }

 private:
  const Fields* fields_;
  const RecordView* view_;
  std::span<const Shape> shapes_ = {};
};

// Must be pure and thread-safe: it is called once per record, in any order, when a plan is first counted or
// opened. A record that cannot be read, or on which it throws, stays in the stream as a bad record: the error is
// that of the batch the record would be in, as ErrorPolicy says. A ConfigError belongs to no record and is thrown
// at once, as is running out of memory.
struct RecordFilter {
  std::string name = {};
  std::uint32_t version = 1;  // part of every fingerprint: change it with the function
  std::function<bool(const ExampleView&)> keeps = {};
  // If true, it sees the fields after the preceding decode() and map() stages, none of which may be random;
  // otherwise as the source holds them. The pass over the records then decodes them once more, and a record that
  // fails there counts as one that could not be judged.
  bool processed = false;
  // Ends it with Error(kTimeout), also if a read for a call takes longer. Not part of a fingerprint.
  double stall_timeout_seconds = 120;
  // Ends it with a DataError: each such record is kept in memory. Not part of a fingerprint.
  std::uint64_t max_failures = 65536;
  void each_field(OptionVisitor& visit) {
    visit("name", name, "For explain() and errors.");
    visit("version", version, "Part of every fingerprint.");
    visit("processed", processed, "Whether the filter sees the fields as the preceding stages leave them.");
    visit("stall_timeout_seconds", stall_timeout_seconds, "A call that takes longer ends the pass; 0: no limit.");
    visit("max_failures", max_failures, "More records than this that cannot be read end the pass.");
  }
};

// For programs that must poll for signals. While it lives, its thread calls `look` about twenty times a second
// when it waits for a pass over all records: a filter's, which size() or a Loader's constructor may be the first
// to need, that of padded_batch() and from_json() of such a plan, or inspect_source()'s. An exception from `look`
// ends the pass within a second and propagates from the call that waited; a later call begins the pass again. The
// innermost poll of a thread counts; an empty `look` leaves the outer one in force. LoaderOptions::while_waiting
// serves as one for the constructor.
class ScanPoll {
 public:
  explicit ScanPoll(std::function<void()> look);
  ~ScanPoll();
  ScanPoll(const ScanPoll&) = delete;
  ScanPoll& operator=(const ScanPoll&) = delete;

  // Calls this thread's poll, if there is one.
  static void look();

 private:
  std::function<void()> look_;
  const std::function<void()>* outer_;
};

// Returns a filter that keeps the records whose label is in `labels`.
RecordFilter with_labels(std::vector<std::int64_t> labels);

// Returns "filter(name, version 1)".
std::string describe(const RecordFilter& filter);

}  // namespace headrace
