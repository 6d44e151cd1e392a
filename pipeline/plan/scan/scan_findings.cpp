#include "headrace/pipeline/plan/scan/scan_findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {

void ScanFindings::note(std::uint64_t position, std::uint64_t record, Failure failure) {
  const std::lock_guard lock(mutex_);
  if (found_.size() == max_) {
    throw DataError(failure.what.code,
                    fmt::format("more than {} records could not be read or judged; one of them is {}", max_,
                                describe(failure.what)),
                    {.source = failure.what.source, .record = record}, advice_);
  }
  found_.push_back({.position = position, .record = record, .failure = std::move(failure)});
}

FilterFailures ScanFindings::take() {
  std::ranges::sort(found_, {}, &Finding::position);
  FilterFailures filter_failures;
  for (const Finding& finding : found_) filter_failures.add(finding.record, finding.failure);
  return filter_failures;
}

}  // namespace headrace
