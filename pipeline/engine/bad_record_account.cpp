#include "headrace/pipeline/engine/bad_record_account.h"

namespace headrace {

void BadRecordAccount::add(const Slot& slot) {
  oriented_.fetch_add(slot.oriented.load(std::memory_order_relaxed), std::memory_order_relaxed);
  warned_.fetch_add(slot.warned.size(), std::memory_order_relaxed);
  if (lists_) list(slot);
  if (slot.bad.empty() || slot.failure) return;
  bad_.fetch_add(slot.bad.size(), std::memory_order_relaxed);
  limit(slot);
}

void BadRecordAccount::list(const Slot& slot) const {
  const ErrorPolicy& errors = run_.options.errors;
  if (errors.tally != nullptr && !slot.failure) {
    for (const BadRecord& bad : slot.bad) errors.tally->add(run_.source().info(), bad);
  }
  if (quarantine_ == nullptr) return;
  for (const BadRecord& warned : slot.warned) quarantine_->add_warning(warned, slot.position);
  for (const BadRecord& bad : slot.bad) quarantine_->add(bad, errors.on_error, slot.position);
  if (slot.failure && slot.failure->is_of_record()) {
    quarantine_->add(slot.failure->what, OnError::kFail, slot.position);
  }
}

void BadRecordAccount::limit(const Slot& slot) {
  const std::uint64_t whole = run_.whole_of(slot.position);
  if (whole_ != whole) bad_of_whole_ = 0;
  whole_ = whole;
  const std::uint64_t before = bad_of_whole_, max_bad = run_.bad_limit.max_bad();
  bad_of_whole_ += slot.bad.size();
  if (bad_of_whole_ > max_bad) run_.bad_limit.refuse(slot.bad[max_bad - before]);
  if (run_.skips() && bad_of_whole_ == run_.bad_records_of) run_.bad_limit.refuse_all(slot.bad.back());
}

}  // namespace headrace
