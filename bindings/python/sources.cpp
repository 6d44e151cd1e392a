// Sources: what lies at a path, arrays, and Python functions and iterators that make records.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// What headrace.open() takes beside the path.
struct OpenOptions {
  Split split = Split::kTrain;
  SourceOptions source = {};

  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    source.each_field(visit);
  }
};

Dataset open(const std::string& path, const nb::dict& given) {
  const auto options = read_options<OpenOptions>(given, "headrace.open()");
  const WithoutGil others_run;
  const SignalPoll poll;
  return Dataset::from(open_source(path, options.split, options.source));
}

Dataset arrays(const std::string& name, std::uint64_t records,
               const std::vector<std::pair<FieldTuple, nb::object>>& given, std::vector<std::string> classes) {
  std::vector<BorrowedArray> borrowed;
  for (const auto& [field, buffer] : given) {
    SharedBuffer shared = share_buffer(buffer);
    borrowed.push_back({.field = to_field(field), .bytes = shared.bytes, .owner = std::move(shared.owner)});
  }
  const WithoutGil others_run;
  return Dataset::from(borrowed_arrays(name, records, std::move(borrowed), std::move(classes)));
}

Dataset generated(const std::string& name, const std::vector<FieldTuple>& fields, std::uint64_t records,
                  std::uint64_t fingerprint, bool anonymous, std::vector<std::string> classes,
                  const PlanFunction& function) {
  GeneratorOptions options{.name = name,
                           .fields = to_fields(fields),
                           .records = records,
                           .fingerprint = fingerprint,
                           .anonymous = anonymous,
                           .classes = std::move(classes)};
  options.function = [function = PythonCallable(function)](std::uint64_t index, RecordWriter& record) {
    function.call([&](nb::handle make) { put(call_function(make, nb::int_(index)), record); });
  };
  return Dataset::from(generator(std::move(options)));
}

// One record of a function that returns None at the end.
bool put_next(const PythonCallable& function, RecordWriter& record) {
  return function.call([&](nb::handle next) {
    const nb::object packed = call_function(next);
    if (packed.is_none()) return false;
    put(packed, record);
    return true;
  });
}

// open(first) gives the function that gives the records from there on.
Dataset streamed(const std::string& name, const std::vector<FieldTuple>& fields, std::uint64_t fingerprint,
                 std::vector<std::string> classes, const PlanFunction& open) {
  StreamOptions options{
      .name = name, .fields = to_fields(fields), .classes = std::move(classes), .fingerprint = fingerprint};
  options.open = [open = PythonCallable(open)](std::uint64_t first) -> std::function<bool(RecordWriter&)> {
    PythonCallable next =
        open.call([&](nb::handle function) { return PythonCallable(call_function(function, nb::int_(first))); });
    return [next = std::move(next)](RecordWriter& record) { return put_next(next, record); };
  };
  return Dataset::from(record_stream(std::move(options)));
}

Dataset pulled_in(const std::string& name, const std::vector<FieldTuple>& fields, std::vector<std::string> classes,
                  std::uint64_t memory_limit, nb::object next) {
  PullOptions options{.name = name, .fields = to_fields(fields), .classes = std::move(classes)};
  if (memory_limit > 0) options.memory_limit = memory_limit;
  options.function = [next = PythonCallable(std::move(next))](RecordWriter& record) {
    return put_next(next, record);
  };
  const WithoutGil others_run;
  return Dataset::from(pulled(std::move(options)));
}

}  // namespace

void put(nb::handle packed, RecordWriter& record) {
  std::size_t field = 0;
  for (nb::handle value : packed) record.put(field++, BufferView(value).bytes());
}

void bind_sources(nb::module_& module) {
  module.def("open", &open, "path"_a, "options"_a);
  module.def("arrays", &arrays, "name"_a, "records"_a, "arrays"_a, "classes"_a);
  module.def("generated", &generated, "name"_a, "fields"_a, "records"_a, "fingerprint"_a, "anonymous"_a,
             "classes"_a, "function"_a);
  module.def("streamed", &streamed, "name"_a, "fields"_a, "fingerprint"_a, "classes"_a, "open"_a);
  module.def("pulled", &pulled_in, "name"_a, "fields"_a, "classes"_a, "memory_limit"_a, "next"_a);
}

}  // namespace headrace::python
