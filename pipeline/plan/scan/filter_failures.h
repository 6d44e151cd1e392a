// Records that a filter could neither keep nor leave out, for they could not be read or judged, and why.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

// Thread-safe once it is filled. The records stay in the stream as bad ones: they are neither read again nor
// looked for in a cache, so that what became of them does not depend on a second attempt.
class FilterFailures {
 public:
  // Of all filters among the index stages of a plan, combined parts included, by their number in the plan's
  // source. Runs the filters that have not run yet; throws what Selection::kept() does.
  static FilterFailures of(const std::vector<Stage>& index_stages);

  // The first failure of a record is the one that stays.
  void add(std::uint64_t record, const Failure& failure) { failures_.emplace(record, failure); }

  bool empty() const noexcept { return failures_.empty(); }
  bool contains(std::uint64_t record) const noexcept { return !empty() && failures_.contains(record); }
  // Throws FilterError where the record is one of them.
  void check(std::uint64_t record) const {
    if (!empty()) look_up(record);
  }

  // The identity of a stream with these records in it: `identity` itself where there are none.
  std::uint64_t mixed_into(std::uint64_t identity) const noexcept;

 private:
  void look_up(std::uint64_t record) const;
  void add_part(const CombinedPart& part, std::uint64_t rows);

  std::map<std::uint64_t, Failure> failures_;
};

}  // namespace headrace
