// Bad records, and tallies over several runs.
#include "headrace/pipeline/bad_record.h"

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {

hr_bad_record bad_record_of(const BadRecord& bad) {
  return {.size = sizeof(hr_bad_record),
          .code = static_cast<hr_status>(bad.code) + 1,
          .substituted = bad.substitute.has_value(),
          .substitute = bad.substitute.value_or(0),
          .source = bad.source.c_str(),
          .name = bad.name.c_str(),
          .operation = bad.operation.c_str(),
          .cause = bad.cause.c_str(),
          .record = bad.record,
          .offset = bad.offset,
          .row = bad.row};
}

std::shared_ptr<BadRecordTally> share(const hr_tally* tally) { return tally != nullptr ? tally->tally : nullptr; }

namespace {

// The first record never changes, so that pointers to its strings stay valid.
const BadRecord& first_of(const hr_tally& of) {
  const std::lock_guard lock(of.mutex);
  if (!of.first) of.first = of.tally->count().first;
  if (!of.first) throw Error(ErrorCode::kNotFound, "hr_tally_first: no bad record was met");
  return *of.first;
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;
using headrace::c::write_struct;

hr_status hr_tally_create(hr_tally** tally) {
  return guarded(__func__, [&] {
    hr_tally*& result = given(tally, "tally");
    result = new hr_tally;
  });
}

hr_status hr_tally_read(const hr_tally* tally, hr_tally_count* count) {
  return guarded(__func__, [&] {
    const headrace::BadRecordTally::Count now = given(tally, "tally").tally->count();
    const hr_tally_count answer{.size = sizeof answer, .bad = now.bad, .records = now.records};
    write_struct(count, answer, "hr_tally_count", "HR_TALLY_COUNT_INIT");
  });
}

hr_status hr_tally_first(const hr_tally* tally, hr_bad_record* first) {
  return guarded(__func__, [&] {
    write_struct(first, headrace::c::bad_record_of(headrace::c::first_of(given(tally, "tally"))), "hr_bad_record",
                 "HR_BAD_RECORD_INIT");
  });
}

void hr_tally_free(hr_tally* tally) { delete tally; }
