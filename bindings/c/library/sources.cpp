// Plans without stages: of files, arrays, the program's functions, and Arrow's tables.
#include "headrace/pipeline/sources.h"

#include "headrace/bindings/c/library/handles.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/arrow_structs.h"
#include "headrace/pipeline/option_json.h"

namespace headrace::c {
namespace {

// Runs the body of a function that makes a plan of a source.
template <typename Open>
hr_status make_dataset(const char* function, hr_dataset** dataset, const Open& open) noexcept {
  return guarded(function, [&] {
    SourcePtr source = open();  // takes what it is given, even if there is nowhere to put the result
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(Dataset::from(std::move(source)), true);
  });
}

// Bytes in the program's memory, or a copy of them.
BorrowedArray array_of(const hr_array& array, std::shared_ptr<const void> owner) {
  const auto* data = static_cast<const std::byte*>(array.data);
  if (array.bytes > 0) require(data, "arrays.data");
  if (array.owner.release == nullptr) {
    auto copy = std::make_shared<std::vector<std::byte>>(data, data + array.bytes);
    data = copy->data();
    owner = std::move(copy);
  }
  return {.field = field_of(array.field), .bytes = {data, array.bytes}, .owner = std::move(owner)};
}

SourcePtr make_in_memory(const hr_array* arrays, std::size_t count, std::uint64_t records, const char* options) {
  std::vector<std::shared_ptr<const void>> owners;  // all are released, even if an array is refused
  for (std::size_t i = 0; i < count; ++i) owners.push_back(share((&given(arrays, "arrays"))[i].owner));
  std::vector<BorrowedArray> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(array_of(arrays[i], std::move(owners[i])));
  std::string name = "memory";
  std::vector<std::string> classes;
  set_from_json(text_of(options), "options of arrays", [&](OptionVisitor& visit) {
    visit("name", name);
    visit("classes", classes);
  });
  return borrowed_arrays(name, records, std::move(list), std::move(classes));
}

SourcePtr make_generator(const hr_record_calls& calls, const char* options, std::shared_ptr<void> user) {
  GeneratorOptions made{.fields = fields_of(calls.fields, calls.field_count)};
  set_from_json(text_of(options), "options of records by number", [&](OptionVisitor& visit) {
    visit("name", made.name);
    visit("records", made.records);
    visit("fingerprint", made.fingerprint);
    visit("classes", made.classes);
  });
  made.function = [make = calls.make, user = std::move(user)](std::uint64_t index, RecordWriter& record) {
    hr_record handle{record};
    call_back("make", [&] { return make(user.get(), index, &handle); });
  };
  return generator(std::move(made));
}

// Returns false at the end.
bool call_next(decltype(hr_record_calls::next) next, void* user, RecordWriter& record) {
  bool end = false;
  hr_record handle{record};
  call_back("next", [&] { return next(user, &handle, &end); });
  return !end;
}

SourcePtr make_pulled(const hr_record_calls& calls, const char* options, std::shared_ptr<void> user) {
  PullOptions made{.fields = fields_of(calls.fields, calls.field_count)};
  set_from_json(text_of(options), "options of pulled records", [&](OptionVisitor& visit) {
    visit("name", made.name);
    visit("classes", made.classes);
    visit("memory_limit", made.memory_limit);
  });
  made.function = [next = calls.next, user = std::move(user)](RecordWriter& record) {
    return call_next(next, user.get(), record);
  };
  return pulled(std::move(made));
}

SourcePtr make_stream(const hr_record_calls& calls, const char* options, std::shared_ptr<void> user) {
  StreamOptions made{.fields = fields_of(calls.fields, calls.field_count)};
  set_from_json(text_of(options), "options of a stream", [&](OptionVisitor& visit) {
    visit("name", made.name);
    visit("classes", made.classes);
    visit("label_count", made.label_count);
    visit("fingerprint", made.fingerprint);
  });
  made.open = [calls, user = std::move(user)](std::uint64_t first) {
    void* opened = nullptr;
    call_back("open", [&] { return calls.open(user.get(), first, &opened); });
    std::shared_ptr<void> stream(opened, [close = calls.close, user](void* of) {  // the user outlives its streams
      if (close != nullptr) close(of);
    });
    return [next = calls.next, stream = std::move(stream)](RecordWriter& record) {
      return call_next(next, stream.get(), record);
    };
  };
  return record_stream(std::move(made));
}

SourcePtr make_of_calls(const hr_record_calls& calls, const char* options, std::shared_ptr<void> user) {
  const bool make = calls.make != nullptr, open = calls.open != nullptr, next = calls.next != nullptr;
  if (make && !open && !next && calls.close == nullptr) return make_generator(calls, options, std::move(user));
  if (open && next && !make) return make_stream(calls, options, std::move(user));
  if (next && !open && !make && calls.close == nullptr) return make_pulled(calls, options, std::move(user));
  throw ConfigError("hr_dataset_from_calls: these functions together make no records",
                    "set make, or next, or open and next with or without close");
}

ArrowOptions arrow_options_of(const char* json) {
  return options_from_json<ArrowOptions>(text_of(json), "options of Arrow");
}

// Takes the stream even if the options are refused.
SourcePtr make_of_table(ArrowArrayStream& stream, const char* json) {
  ArrowOptions options;
  try {
    options = arrow_options_of(json);
  } catch (...) {
    if (stream.release != nullptr) stream.release(&stream);
    throw;
  }
  return arrow_table(&stream, std::move(options));
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;
using headrace::c::make_dataset;

hr_status hr_dataset_open(const char* path, const char* options, hr_dataset** dataset) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(dataset, "dataset");
    if (path == nullptr && options == nullptr) headrace::c::require(path, "path");
    headrace::Dataset plan = headrace::open_dataset(headrace::c::text_of(path), headrace::c::text_of(options));
    const bool is_source = plan.source()->origin() != nullptr;  // not a combination of datasets
    result = new hr_dataset(std::move(plan), is_source);
  });
}

hr_status hr_dataset_from_arrays(const hr_array* arrays, size_t count, uint64_t records, const char* options,
                                 hr_dataset** dataset) {
  return make_dataset(__func__, dataset,
                      [&] { return headrace::c::make_in_memory(arrays, count, records, options); });
}

hr_status hr_dataset_from_calls(const hr_record_calls* calls, const char* options, hr_dataset** dataset) {
  return make_dataset(__func__, dataset, [&] {
    const auto how = HR_READ(hr_record_calls, HR_RECORD_CALLS_INIT, &given(calls, "calls"));
    std::shared_ptr<void> user = headrace::c::share(how.user);
    given(dataset, "dataset");
    return headrace::c::make_of_calls(how, options, std::move(user));
  });
}

hr_status hr_dataset_from_arrow(struct ArrowArrayStream* stream, const char* options, hr_dataset** dataset) {
  return make_dataset(__func__, dataset,
                      [&] { return headrace::c::make_of_table(given(stream, "stream"), options); });
}

hr_status hr_dataset_from_arrow_stream(hr_status (*open)(void* user, struct ArrowArrayStream* stream),
                                       hr_user user, const char* options, hr_dataset** dataset) {
  return make_dataset(__func__, dataset, [&] {
    std::shared_ptr<void> shared = headrace::c::share(user);
    headrace::c::require(reinterpret_cast<const void*>(open), "open");
    auto open_stream = [open, user = std::move(shared)](ArrowArrayStream* stream) {
      headrace::c::call_back("open", [&] { return open(user.get(), stream); });
    };
    return headrace::arrow_stream(std::move(open_stream), headrace::c::arrow_options_of(options));
  });
}

hr_status hr_record_put(hr_record* record, size_t field, const void* data, size_t bytes) {
  return guarded(__func__, [&] {
    if (bytes > 0) headrace::c::require(data, "data");
    given(record, "record").writer.put(field, std::span(static_cast<const std::byte*>(data), bytes));
  });
}

hr_status hr_record_allocate(hr_record* record, size_t field, size_t bytes, void** room) {
  return guarded(__func__, [&] {
    void*& result = given(room, "room");
    result = given(record, "record").writer.allocate(field, bytes).data();
  });
}
