// Sources whose records the program has in memory or makes.
#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"
#include "headrace/pipeline/sources.h"

namespace headrace::c {
namespace {

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

hr_source* made(SourcePtr source) { return new hr_source{.source = std::move(source)}; }

SourcePtr make_in_memory(const hr_memory_options& options) {
  std::vector<std::shared_ptr<const void>> owners;  // all are released, even if an array is refused
  for (std::size_t i = 0; i < options.array_count; ++i)
    owners.push_back(share((&given(options.arrays, "arrays"))[i].owner));
  std::vector<BorrowedArray> arrays;
  for (std::size_t i = 0; i < options.array_count; ++i)
    arrays.push_back(array_of(options.arrays[i], std::move(owners[i])));
  return borrowed_arrays(text_of(options.name, "memory"), options.records, std::move(arrays),
                         texts_of(options.classes, options.class_count, "classes"));
}

SourcePtr make_generator(const hr_generator_options& options, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(options.make), "make");
  return generator(
      {.name = text_of(options.name, "generator"),
       .fields = fields_of(options.fields, options.field_count),
       .records = options.records,
       .fingerprint = options.fingerprint,
       .classes = texts_of(options.classes, options.class_count, "classes"),
       .function = [make = options.make, user = std::move(user)](std::uint64_t index, RecordWriter& record) {
         hr_record handle{record};
         call_back("make", [&] { return make(user.get(), index, &handle); });
       }});
}

using NextRecord = hr_status (*)(void*, hr_record*, bool*);

// Returns false at the end.
bool call_next(NextRecord next, void* user, RecordWriter& record) {
  bool end = false;
  hr_record handle{record};
  call_back("next", [&] { return next(user, &handle, &end); });
  return !end;
}

SourcePtr make_pulled(const hr_pull_options& options, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(options.next), "next");
  PullOptions pull{.name = text_of(options.name, "pulled"),
                   .fields = fields_of(options.fields, options.field_count),
                   .classes = texts_of(options.classes, options.class_count, "classes")};
  if (options.memory_limit != 0) pull.memory_limit = options.memory_limit;
  pull.function = [next = options.next, user = std::move(user)](RecordWriter& record) {
    return call_next(next, user.get(), record);
  };
  return pulled(std::move(pull));
}

SourcePtr make_stream(const hr_stream_options& options, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(options.open), "open");
  require(reinterpret_cast<const void*>(options.next), "next");
  const auto open = [given = options, user = std::move(user)](std::uint64_t first) {
    void* opened = nullptr;
    call_back("open", [&] { return given.open(user.get(), first, &opened); });
    const auto close = given.close;
    std::shared_ptr<void> stream(opened, [close, user](void* of) {  // the user outlives its streams
      if (close != nullptr) close(of);
    });
    return [next = given.next, stream = std::move(stream)](RecordWriter& record) {
      return call_next(next, stream.get(), record);
    };
  };
  return record_stream({.name = text_of(options.name, "stream"),
                        .fields = fields_of(options.fields, options.field_count),
                        .classes = texts_of(options.classes, options.class_count, "classes"),
                        .label_count = options.label_count,
                        .fingerprint = options.fingerprint,
                        .open = open});
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_source_in_memory(const hr_memory_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_memory_options, HR_MEMORY_OPTIONS_INIT, options);
    headrace::SourcePtr made = headrace::c::make_in_memory(how);
    hr_source*& result = given(source, "source");
    result = headrace::c::made(std::move(made));
  });
}

hr_status hr_source_generator(const hr_generator_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_generator_options, HR_GENERATOR_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    hr_source*& result = given(source, "source");
    result = headrace::c::made(headrace::c::make_generator(how, std::move(user)));
  });
}

hr_status hr_source_pulled(const hr_pull_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_pull_options, HR_PULL_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    hr_source*& result = given(source, "source");
    result = headrace::c::made(headrace::c::make_pulled(how, std::move(user)));
  });
}

hr_status hr_source_stream(const hr_stream_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_stream_options, HR_STREAM_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    hr_source*& result = given(source, "source");
    result = headrace::c::made(headrace::c::make_stream(how, std::move(user)));
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
