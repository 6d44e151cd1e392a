// The program's code and data that plans name: operations, filters and sources.
#include <fmt/format.h>

#include <array>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/pipeline/option_json.h"

// What one call of an operation or a filter sees.
struct hr_sample {
  const headrace::ExampleView* record = nullptr;  // a filter's
  // An operation's, with the names of its fields.
  headrace::UserSample* sample = nullptr;
  const std::vector<std::string>* inputs = nullptr;
  const headrace::Fields* outputs = nullptr;
  bool has_position = false;
};

namespace headrace::c {
namespace {

// The options of an operation that are data. It reads `inputs`, or, if `field` is set, replaces that one.
struct OperationOptions {
  std::string name = {};
  std::uint32_t version = 1;
  std::vector<std::string> inputs = {"image"};
  bool each_pass_anew = false;
  std::string field = {};

  void each_field(OptionVisitor& visit) {
    visit("name", name, "For explain() and errors.");
    visit("version", version, "Part of every fingerprint.");
    visit("inputs", inputs, "The fields that it reads.");
    visit("each_pass_anew", each_pass_anew, "Whether it draws random numbers or depends on the pass.");
    visit("field", field, "The one field that it replaces, in place of `inputs`.");
  }
};

using Function = hr_status (*)(void* user, hr_sample* sample);

void call_function(Function function, void* user, hr_sample& sample) {
  call_back("function", [&] { return function(user, &sample); });
}

Operations operation_of(OperationOptions options, Fields outputs, Function function, std::shared_ptr<void> user) {
  return user_operation(
      {.name = std::move(options.name),
       .version = options.version,
       .inputs = options.inputs,
       .outputs = outputs,
       .each_pass_anew = options.each_pass_anew,
       .function = [function, user = std::move(user), inputs = options.inputs, outputs](UserSample& sample) {
         hr_sample handle{.sample = &sample, .inputs = &inputs, .outputs = &outputs, .has_position = true};
         call_function(function, user.get(), handle);
       }});
}

Operations map_of(OperationOptions options, Fields outputs, Function function, std::shared_ptr<void> user) {
  if (outputs.size() != 1) {
    throw ConfigError(
        fmt::format("hr_parts_add_operation: {} outputs for the field '{}'", outputs.size(), options.field),
        "give the dtype and shape of what replaces it");
  }
  outputs[0].name = options.field;
  return user_map({.name = std::move(options.name),
                   .version = options.version,
                   .field = options.field,
                   .output = outputs[0],
                   .function = [function, user = std::move(user), inputs = std::vector{options.field}, outputs](
                                   std::span<const std::byte> in, const Shape& shape, std::span<std::byte> out,
                                   Philox& numbers) {
                     const std::array<UserSample::Input, 1> input{{{.bytes = in, .shape = shape}}};
                     const std::array<std::span<std::byte>, 1> room{out};
                     UserSample sample({}, input, outputs, room, numbers);
                     hr_sample handle{.sample = &sample, .inputs = &inputs, .outputs = &outputs};
                     call_function(function, user.get(), handle);
                     sample.want_all_written();
                   }});
}

Operations make_operation(const char* json, Fields outputs, Function function, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(function), "function");
  auto options = options_from_json<OperationOptions>(text_of(json), "options of an operation");
  if (options.name.empty()) throw ConfigError("hr_parts_add_operation: it has no name", "give one as \"name\"");
  if (options.field.empty())
    return operation_of(std::move(options), std::move(outputs), function, std::move(user));
  if (options.inputs != OperationOptions().inputs || options.each_pass_anew) {
    throw ConfigError("hr_parts_add_operation: field stands in place of inputs and each_pass_anew",
                      "leave one of them out");
  }
  return map_of(std::move(options), std::move(outputs), function, std::move(user));
}

RecordFilter make_filter(const char* json, hr_status (*keeps)(void*, const hr_sample*, bool*),
                         std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(keeps), "keeps");
  auto filter = options_from_json<RecordFilter>(text_of(json), "options of a filter");
  if (filter.name.empty()) throw ConfigError("hr_parts_add_filter: it has no name", "give one as \"name\"");
  filter.keeps = [keeps, user = std::move(user)](const ExampleView& record) {
    const hr_sample handle{.record = &record};
    bool keep = false;
    call_back("keeps", [&] { return keeps(user.get(), &handle, &keep); });
    return keep;
  };
  return filter;
}

std::size_t input_of(const hr_sample& sample, const std::string& field) {
  const auto found = std::ranges::find(*sample.inputs, field);
  if (found == sample.inputs->end()) {
    throw ConfigError(fmt::format("{}: '{}' is no input", current_function, field), "add it to \"inputs\"");
  }
  return static_cast<std::size_t>(found - sample.inputs->begin());
}

void write_shape(const Shape& shape, std::int64_t* extents, std::size_t* rank) {
  if (extents != nullptr) std::ranges::copy(shape.extents(), extents);
  if (rank != nullptr) *rank = static_cast<std::size_t>(shape.rank());
}

// Throws ConfigError where a filter asks for what only an operation has.
hr_sample& operation_only(hr_sample* sample) {
  hr_sample& of = given(sample, "sample");
  if (of.sample == nullptr) throw ConfigError(fmt::format("{}: called in a filter", current_function));
  return of;
}

Philox* random_of(hr_sample* sample) {
  return sample != nullptr && sample->sample != nullptr ? &sample->sample->random() : nullptr;
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;
using headrace::c::operation_only;

hr_status hr_parts_create(hr_parts** parts) {
  return guarded(__func__, [&] {
    hr_parts*& result = given(parts, "parts");
    result = new hr_parts;
  });
}

void hr_parts_free(hr_parts* parts) { delete parts; }

hr_status hr_parts_add_operation(hr_parts* parts, const char* options, const hr_field* outputs,
                                 size_t output_count, hr_status (*function)(void* user, hr_sample* sample),
                                 hr_user user) {
  return guarded(__func__, [&] {
    std::shared_ptr<void> shared = headrace::c::share(user);
    headrace::PlanParts& to = given(parts, "parts").parts;
    to.operations.push_back(headrace::c::make_operation(options, headrace::c::fields_of(outputs, output_count),
                                                        function, std::move(shared)));
  });
}

hr_status hr_parts_add_filter(hr_parts* parts, const char* options,
                              hr_status (*keeps)(void* user, const hr_sample* sample, bool* keep), hr_user user) {
  return guarded(__func__, [&] {
    std::shared_ptr<void> shared = headrace::c::share(user);
    headrace::PlanParts& to = given(parts, "parts").parts;
    to.filters.push_back(headrace::c::make_filter(options, keeps, std::move(shared)));
  });
}

hr_status hr_parts_add_source(hr_parts* parts, const char* name, const hr_dataset* dataset) {
  return guarded(__func__, [&] {
    headrace::PlanParts& to = given(parts, "parts").parts;
    const std::string named = &given(name, "name");
    const hr_dataset& records = given(dataset, "dataset");
    if (records.has_stages) {
      throw headrace::ConfigError("hr_parts_add_source: the dataset is more than a source",
                                  "add it as it was before stages were added to it");
    }
    to.sources[named] = records.plan.source();
  });
}

hr_status hr_sample_input(const hr_sample* sample, const char* field, const void** data, size_t* bytes,
                          int64_t* shape, size_t* rank) {
  return guarded(__func__, [&] {
    const hr_sample& of = given(sample, "sample");
    const std::string name = &given(field, "field");
    const void*& to = given(data, "data");
    std::size_t& size = given(bytes, "bytes");
    const std::size_t input = of.record != nullptr ? 0 : headrace::c::input_of(of, name);
    const auto all = of.record != nullptr ? of.record->bytes(name) : of.sample->bytes(input);
    headrace::c::write_shape(of.record != nullptr ? of.record->shape(name) : of.sample->shape(input), shape, rank);
    to = all.data();
    size = all.size();
  });
}

hr_status hr_sample_integer(const hr_sample* sample, const char* field, int64_t* value) {
  return guarded(__func__, [&] {
    const hr_sample& of = given(sample, "sample");
    const std::string name = &given(field, "field");
    if (of.record == nullptr) {
      throw headrace::ConfigError("hr_sample_integer: called in an operation", "read it with hr_sample_input()");
    }
    given(value, "value") = of.record->integer(name);
  });
}

hr_status hr_sample_output(hr_sample* sample, const char* field, void** room, size_t* bytes) {
  return guarded(__func__, [&] {
    const hr_sample& of = operation_only(sample);
    const std::size_t output = headrace::find_field(*of.outputs, &given(field, "field"));
    void*& to = given(room, "room");
    std::size_t& size = given(bytes, "bytes");
    const std::span<std::byte> all = of.sample->room(output);
    to = all.data();
    size = all.size();
  });
}

hr_status hr_sample_position(const hr_sample* sample, uint64_t* record, uint64_t* pass) {
  return guarded(__func__, [&] {
    const hr_sample& of = given(sample, "sample");
    if (!of.has_position) {
      throw headrace::ConfigError("hr_sample_position: only an operation with inputs knows its record");
    }
    given(record, "record") = of.sample->position().record;
    given(pass, "pass") = of.sample->position().pass;
  });
}

uint32_t hr_random_bits(hr_sample* sample) {
  headrace::Philox* const numbers = headrace::c::random_of(sample);
  return numbers != nullptr ? numbers->next_u32() : 0;
}

float hr_random_uniform(hr_sample* sample) {
  headrace::Philox* const numbers = headrace::c::random_of(sample);
  return numbers != nullptr ? numbers->uniform() : 0;
}

uint32_t hr_random_below(hr_sample* sample, uint32_t bound) {
  headrace::Philox* const numbers = headrace::c::random_of(sample);
  return numbers != nullptr && bound > 0 ? numbers->below(bound) : 0;
}
