// The records that a pass over all records could not judge, found by threads in any order.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

class ScanFindings {
 public:
  // `advice`: what to do if there are more than `max`.
  ScanFindings(std::uint64_t max, std::string advice) : max_(max), advice_(std::move(advice)) {}

  // Thread-safe. Throws DataError if the limit is exceeded.
  void note(std::uint64_t position, std::uint64_t record, Failure failure);
  // For a record at several positions, takes the finding of the smallest position.
  FilterFailures take();

 private:
  struct Finding {
    std::uint64_t position, record;
    Failure failure;
  };

  std::uint64_t max_;
  std::string advice_;
  std::mutex mutex_;
  std::vector<Finding> found_;  // by mutex_
};

}  // namespace headrace
