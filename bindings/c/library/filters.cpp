// Filters that call the program's function, or look at labels.
#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

RecordFilter filter_of(const hr_filter_options& options, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(options.keeps), "keeps");
  const auto keeps = [call = options.keeps, user = std::move(user)](const ExampleView& view) {
    const hr_example example{view};
    bool keep = false;
    call_back("keeps", [&] { return call(user.get(), &example, &keep); });
    return keep;
  };
  return {.name = text_of(options.name),
          .version = options.version,
          .keeps = keeps,
          .processed = options.processed,
          .stall_timeout_seconds = options.stall_timeout_seconds,
          .max_failures = options.max_failures};
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_filter_create(const hr_filter_options* options, hr_filter** filter) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_filter_options, HR_FILTER_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    hr_filter*& result = given(filter, "filter");
    result = new hr_filter{headrace::c::filter_of(how, std::move(user))};
  });
}

void hr_filter_free(hr_filter* filter) { delete filter; }

hr_status hr_dataset_filter(hr_dataset* dataset, const hr_filter* filter) {
  return guarded(__func__, [&] {
    hr_dataset& changed = given(dataset, "dataset");
    changed.plan = changed.plan.filter(given(filter, "filter").filter);
  });
}

hr_status hr_example_bytes(const hr_example* example, const char* field, const void** data, size_t* bytes) {
  return guarded(__func__, [&] {
    const auto all = given(example, "example").view.bytes(&given(field, "field"));
    const void*& to = given(data, "data");
    given(bytes, "bytes") = all.size();
    to = all.data();
  });
}

hr_status hr_example_shape(const hr_example* example, const char* field, int64_t* shape, size_t* rank) {
  return guarded(__func__, [&] {
    const headrace::Shape of = given(example, "example").view.shape(&given(field, "field"));
    headrace::c::require(shape, "shape");
    headrace::c::require(rank, "rank");
    headrace::c::write_shape(of, shape, rank);
  });
}

hr_status hr_example_integer(const hr_example* example, const char* field, int64_t* value) {
  return guarded(__func__,
                 [&] { given(value, "value") = given(example, "example").view.integer(&given(field, "field")); });
}
