#include "headrace/pipeline/engine/bad_record_account.h"

namespace headrace {

template <typename Made>
void BadRecordAccount::add(const Made& batch) {
  oriented_.fetch_add(batch.oriented, std::memory_order_relaxed);
  warned_.fetch_add(batch.warned.size(), std::memory_order_relaxed);
  if (lists_) list(batch);
  if (batch.bad.empty() || batch.failure) return;
  bad_.fetch_add(batch.bad.size(), std::memory_order_relaxed);
  limit(batch);
}

template <typename Made>
void BadRecordAccount::list(const Made& batch) const {
  const ErrorPolicy& errors = run_.options.errors;
  if (errors.tally != nullptr && !batch.failure) {
    for (const BadRecord& bad : batch.bad) errors.tally->add(run_.source().info(), bad);
  }
  if (quarantine_ == nullptr) return;
  for (const BadRecord& warned : batch.warned) quarantine_->add_warning(warned, batch.position);
  for (const BadRecord& bad : batch.bad) quarantine_->add(bad, errors.on_error, batch.position);
  if (batch.failure && batch.failure->is_of_record()) {
    quarantine_->add(batch.failure->what, OnError::kFail, batch.position);
  }
}

template <typename Made>
void BadRecordAccount::limit(const Made& batch) {
  const std::uint64_t whole = run_.whole_of(batch.position);
  if (whole_ != whole) bad_of_whole_ = 0;
  whole_ = whole;
  const std::uint64_t before = bad_of_whole_, max_bad = run_.bad_limit.max_bad();
  bad_of_whole_ += batch.bad.size();
  if (bad_of_whole_ > max_bad) run_.bad_limit.refuse(batch.bad[max_bad - before]);
  if (run_.skips() && bad_of_whole_ == run_.bad_records_of) run_.bad_limit.refuse_all(batch.bad.back());
}

template void BadRecordAccount::add(const Slot& batch);
template void BadRecordAccount::add(const EmptyBatch& batch);

}  // namespace headrace
