// The records that a filter could neither keep nor drop, because they could not be read or judged, and the
// reasons.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "headrace/pipeline/plan/stage.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

// Thread-safe once it is filled. The records stay in the stream as bad ones: they are neither read again nor
// looked up in a cache, so that their outcome does not depend on a second attempt.
class FilterFailures {
 public:
  // Returns the failures of all filters among a plan's index stages, including combined parts, by record number in
  // the plan's source. Runs the filters that have not run yet, and throws as that does.
  static FilterFailures of(const std::vector<StagePtr>& index_stages);

  // Adds a failure unless the record already has one.
  void add(std::uint64_t record, const Failure& failure) { failures_.emplace(record, failure); }
  // Adds those of records that have none yet.
  void add(const FilterFailures& others) { failures_.insert(others.failures_.begin(), others.failures_.end()); }

  const std::map<std::uint64_t, Failure>& by_record() const& noexcept { return failures_; }

  bool empty() const noexcept { return failures_.empty(); }
  bool contains(std::uint64_t record) const noexcept { return !empty() && failures_.contains(record); }
  // Throws FilterError if the record is one of them.
  void check(std::uint64_t record) const {
    if (!empty()) look_up(record);
  }

  // Returns the identity of a stream with these records; `identity` itself if there are none.
  std::uint64_t mixed_into(std::uint64_t identity) const noexcept;

 private:
  void look_up(std::uint64_t record) const;

  std::map<std::uint64_t, Failure> failures_;
};

}  // namespace headrace
