#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"
#include "headrace/pipeline/convert.h"

namespace headrace::c {
namespace {

ConvertOptions convert_options_of(const hr_convert_options& how) {
  ConvertOptions options{.max_side = how.max_side,
                         .quality = how.quality,
                         .threads = how.threads,
                         .apply_orientation = how.apply_orientation};
  if (how.split != -1) options.split = enum_of(how.split, Split::kTest, "split");
  options.source = {.layout = {.classes_at = text_of(how.classes_at),
                               .train_folder = text_of(how.train_folder),
                               .test_folder = text_of(how.test_folder)},
                    .label_count = how.label_count};
  options.errors.on_error = how.skip_bad ? OnError::kSkip : OnError::kFail;
  options.errors.max_bad_share = how.max_bad_share;
  options.errors.quarantine = text_of(how.quarantine);
  options.errors.tally = share(how.tally);
  return options;
}

}  // namespace
}  // namespace headrace::c

hr_status hr_convert(const char* data, const char* to, const hr_convert_options* options,
                     hr_convert_result* result) {
  return headrace::c::guarded(__func__, [&] {
    const auto how = HR_READ(hr_convert_options, HR_CONVERT_OPTIONS_INIT, options);
    if (result != nullptr) headrace::c::check_size(result->size, "hr_convert_result", "HR_CONVERT_RESULT_INIT");
    const headrace::ConvertResult done = headrace::convert_dataset(
        &headrace::c::given(data, "data"), &headrace::c::given(to, "to"), headrace::c::convert_options_of(how));
    if (result == nullptr) return;
    const hr_convert_result answer{
        .size = sizeof answer, .records = done.records, .bytes = done.bytes, .bad_records = done.bad_records};
    headrace::c::write_struct(result, answer, "hr_convert_result", "HR_CONVERT_RESULT_INIT");
  });
}
