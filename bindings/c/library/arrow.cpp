// Tables of Arrow as sources, batches as structs of Arrow.
#include "headrace/pipeline/arrow.h"

#include <memory>
#include <utility>

#include "headrace/bindings/c/library/errors.h"
#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

ArrowOptions arrow_options_of(const hr_arrow_options* given) {
  const auto from = HR_READ(hr_arrow_options, HR_ARROW_OPTIONS_INIT, given);
  ArrowOptions options{.name = text_of(from.name, "arrow"),
                       .columns = {.image_column = text_of(from.image_column),
                                   .label_column = text_of(from.label_column),
                                   .columns = texts_of(from.columns, from.column_count, "columns"),
                                   .label_type = enum_of(from.label_type, LabelType::kNumber, "label_type")},
                       .classes = texts_of(from.classes, from.class_count, "classes"),
                       .label_count = from.label_count};
  if (from.memory_limit != 0) options.memory_limit = from.memory_limit;
  return options;
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_source_arrow(struct ArrowArrayStream* stream, const hr_arrow_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    hr_source*& result = given(source, "source");
    headrace::SourcePtr made =
        headrace::arrow_table(&given(stream, "stream"), headrace::c::arrow_options_of(options));
    result = new hr_source{.source = std::move(made)};
  });
}

hr_status hr_source_arrow_stream(hr_status (*open)(void* user, struct ArrowArrayStream* stream), hr_user user,
                                 const hr_arrow_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    std::shared_ptr<void> shared = headrace::c::share(user);
    headrace::c::require(reinterpret_cast<const void*>(open), "open");
    hr_source*& result = given(source, "source");
    auto open_stream = [open, user = std::move(shared)](ArrowArrayStream* stream) {
      headrace::c::call_back("open", [&] { return open(user.get(), stream); });
    };
    headrace::SourcePtr made =
        headrace::arrow_stream(std::move(open_stream), headrace::c::arrow_options_of(options));
    result = new hr_source{.source = std::move(made)};
  });
}

hr_status hr_batch_arrow(const hr_batch* batch, struct ArrowSchema* schema, struct ArrowArray* array) {
  return guarded(__func__, [&] {
    headrace::export_arrow(given(batch, "batch").batch, &given(schema, "schema"), &given(array, "array"));
  });
}
