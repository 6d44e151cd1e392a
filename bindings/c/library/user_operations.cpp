// Operations that call the program's functions.
#include <array>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

UserMap user_map_of(const hr_user_map_options& options, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(options.function), "function");
  const auto function = [call = options.function, user = std::move(user)](
                            std::span<const std::byte> in, const Shape& shape, std::span<std::byte> out,
                            Philox& numbers) {
    hr_random random{numbers};
    call_back("function", [&] {
      return call(user.get(), in.data(), in.size(), shape.extents().data(), static_cast<std::size_t>(shape.rank()),
                  out.data(), out.size(), &random);
    });
  };
  return {.name = text_of(options.name),
          .version = options.version,
          .field = text_of(options.field, "image"),
          .output = field_of(options.output),
          .function = function};
}

UserOperation user_operation_of(const hr_user_operation_options& options, std::shared_ptr<void> user) {
  require(reinterpret_cast<const void*>(options.function), "function");
  UserOperation operation{.name = text_of(options.name), .version = options.version};
  if (options.input_count > 0) operation.inputs = texts_of(options.inputs, options.input_count, "inputs");
  operation.outputs = fields_of(options.outputs, options.output_count);
  operation.each_pass_anew = options.each_pass_anew;
  operation.function = [call = options.function, user = std::move(user), inputs = operation.inputs.size(),
                        outputs = operation.outputs.size()](UserSample& sample) {
    hr_sample handle{.sample = sample, .inputs = inputs, .outputs = outputs};
    call_back("function", [&] { return call(user.get(), &handle); });
  };
  return operation;
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_user_map(hr_operations* chain, const hr_user_map_options* options) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_user_map_options, HR_USER_MAP_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    std::vector<headrace::Operation>& list = given(chain, "chain").list;
    list.emplace_back(headrace::c::user_map_of(how, std::move(user)));
  });
}

hr_status hr_user_operation(hr_operations* chain, const hr_user_operation_options* options) {
  return guarded(__func__, [&] {
    headrace::c::require(options, "options");
    const auto how = HR_READ(hr_user_operation_options, HR_USER_OPERATION_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    std::vector<headrace::Operation>& list = given(chain, "chain").list;
    list.emplace_back(headrace::c::user_operation_of(how, std::move(user)));
  });
}

uint32_t hr_random_bits(hr_random* random) { return random != nullptr ? random->numbers.next_u32() : 0; }

float hr_random_uniform(hr_random* random) { return random != nullptr ? random->numbers.uniform() : 0; }

uint32_t hr_random_below(hr_random* random, uint32_t bound) {
  return random != nullptr && bound > 0 ? random->numbers.below(bound) : 0;
}

hr_status hr_sample_input(const hr_sample* sample, size_t input, const void** data, size_t* bytes, int64_t* shape,
                          size_t* rank) {
  return guarded(__func__, [&] {
    const hr_sample& of = given(sample, "sample");
    headrace::c::check_index(input, of.inputs, "input");
    const void*& to = given(data, "data");
    given(bytes, "bytes") = of.sample.bytes(input).size();
    to = of.sample.bytes(input).data();
    headrace::c::write_shape(of.sample.shape(input), shape, rank);
  });
}

hr_status hr_sample_output(hr_sample* sample, size_t output, void** room, size_t* bytes) {
  return guarded(__func__, [&] {
    hr_sample& of = given(sample, "sample");
    headrace::c::check_index(output, of.outputs, "output");
    void*& to = given(room, "room");
    std::size_t& size = given(bytes, "bytes");
    const std::span<std::byte> all = of.sample.room(output);
    to = all.data();
    size = all.size();
  });
}

hr_status hr_sample_position(const hr_sample* sample, uint64_t* record, uint64_t* pass) {
  return guarded(__func__, [&] {
    const headrace::UserSample::Position& position = given(sample, "sample").sample.position();
    given(record, "record") = position.record;
    given(pass, "pass") = position.pass;
  });
}

hr_random* hr_sample_random(hr_sample* sample) { return sample != nullptr ? &sample->random : nullptr; }
