#include "headrace/pipeline/bad_record.h"

#include "headrace/pipeline/source.h"

namespace headrace {

std::string describe(const BadRecord& bad) {
  std::string text = bad.name.empty() ? "" : bad.name + ": ";
  if (!bad.operation.empty()) text += bad.operation + ": ";
  return text + bad.cause;
}

void BadRecordTally::begin(const SourceInfo& source) {
  const std::lock_guard lock(mutex_);
  if (sources_.insert(source.fingerprint).second) count_.records += source.records;
}

void BadRecordTally::add(const SourceInfo& source, const BadRecord& bad) {
  const std::lock_guard lock(mutex_);
  if (!counted_.emplace(source.fingerprint, bad.record).second) return;
  ++count_.bad;
  if (!count_.first) count_.first = bad;
}

BadRecordTally::Count BadRecordTally::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

const char* to_string(OnError on_error) noexcept {
  return choice_names(on_error)[static_cast<std::size_t>(on_error)];
}

OnError parse_on_error(const std::string& word) {
  for (const OnError one : {OnError::kFail, OnError::kSkip, OnError::kSubstitute}) {
    if (word == to_string(one)) return one;
  }
  throw ConfigError("there is no error policy '" + word + "'", "it is fail, skip or substitute");
}

}  // namespace headrace
