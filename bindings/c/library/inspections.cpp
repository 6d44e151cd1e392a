#include "headrace/pipeline/inspect.h"

#include <iterator>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

hr_inspection_info info_of(const Inspection& found) {
  return {.size = sizeof(hr_inspection_info),
          .records = found.records,
          .examined = found.examined,
          .bytes = found.bytes,
          .min_height = found.height.min,
          .max_height = found.height.max,
          .min_width = found.width.min,
          .max_width = found.width.max,
          .label_count = found.labels.size(),
          .labelled = found.labelled,
          .bad = found.bad,
          .warned = found.warned,
          .oriented = found.oriented,
          .bad_listed = found.first_bad.size(),
          .warned_listed = found.first_warned.size()};
}

void write_listed(const std::vector<BadRecord>& listed, std::size_t index, hr_bad_record* to) {
  check_index(index, listed.size(), "listed record");
  write_struct(to, bad_record_of(listed[index]), "hr_bad_record", "HR_BAD_RECORD_INIT");
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_source_inspect(const hr_source* source, const hr_inspect_options* options,
                            hr_inspection** inspection) {
  return guarded(__func__, [&] {
    const auto how = HR_READ(hr_inspect_options, HR_INSPECT_OPTIONS_INIT, options);
    hr_inspection*& result = given(inspection, "inspection");
    result = new hr_inspection{headrace::inspect_source(
        given(source, "source").source, {.max_examined = how.max_examined, .max_listed = how.max_listed})};
  });
}

hr_status hr_inspection_describe(const hr_inspection* inspection, hr_inspection_info* info) {
  return guarded(__func__, [&] {
    headrace::c::write_struct(info, headrace::c::info_of(given(inspection, "inspection").found),
                              "hr_inspection_info", "HR_INSPECTION_INFO_INIT");
  });
}

hr_status hr_inspection_label(const hr_inspection* inspection, size_t index, int64_t* label, uint64_t* records) {
  return guarded(__func__, [&] {
    const auto& labels = given(inspection, "inspection").found.labels;
    headrace::c::check_index(index, labels.size(), "label");
    const auto found = std::next(labels.begin(), static_cast<std::ptrdiff_t>(index));
    int64_t& to = given(label, "label");
    given(records, "records") = found->second;
    to = found->first;
  });
}

hr_status hr_inspection_bad_record(const hr_inspection* inspection, size_t index, hr_bad_record* bad) {
  return guarded(__func__,
                 [&] { headrace::c::write_listed(given(inspection, "inspection").found.first_bad, index, bad); });
}

hr_status hr_inspection_warned_record(const hr_inspection* inspection, size_t index, hr_bad_record* warned) {
  return guarded(__func__, [&] {
    headrace::c::write_listed(given(inspection, "inspection").found.first_warned, index, warned);
  });
}

void hr_inspection_free(hr_inspection* inspection) { delete inspection; }
