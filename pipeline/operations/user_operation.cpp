#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

// Calls user code, and tells the watchdog, which may abandon the thread. Any exception arrives as a
// std::exception.
template <typename Call>
void call_user_code(Probe& probe, const Call& call) {
  run_user_code(probe, [&] {
    try {
      call();
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      throw Error(ErrorCode::kInvalidArgument, "threw something that is no std::exception");
    }
  });
}

std::size_t output_bytes(const Field& output) {
  return static_cast<std::size_t>(output.shape.elements()) * size_of(output.dtype);
}

// Returns the field that a function makes of one: the layout stays that of the images before, unless it says
// another, or changes the number of channels.
Field made_of(const Field& before, Field output) {
  const bool images = before.shape.rank() == 3 && output.shape.rank() == 3;
  if (images && !output.layout && before.layout) {
    output.layout = before.layout;
    if (channels_of(output) != channels_of(before)) output.layout.reset();
  }
  return output;
}

// Returns "float32 (3, 8, 9)", with the layout if that says channels first.
std::string made_text(const Field& output) {
  const bool first = layout_of(output) == ImageLayout::kChannelsFirst;
  return fmt::format("{} {}{}", to_string(output.dtype), output.shape.to_string(), first ? " CHW" : "");
}

// The function's results go through scratch memory, so that an abandoned call never writes to a batch.
class UserOperationStep final : public SampleStep {
 public:
  UserOperationStep(const UserOperation& operation, std::uint16_t number, const Fields& before,
                    const Fields& after)
      : operation_(operation), number_(number) {
    for (const std::string& name : operation_.inputs) inputs_.push_back(find_field(before, name));
    for (const Field& output : operation_.outputs) {
      outputs_.push_back(find_field(after, output.name));
      bytes_ += output_bytes(output);
    }
  }

  void run(SampleView sample, const StepContext& context) const override {
    std::array<UserSample::Input, kMaxFields> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs[i] = {.bytes = sample[inputs_[i]].bytes, .shape = sample[inputs_[i]].shape};
    }
    std::array<std::span<std::byte>, kMaxFields> room;
    std::span<std::byte> rest = context.scratch->grow(context.scratch->made, bytes_);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      room[i] = rest.first(output_bytes(operation_.outputs[i]));
      rest = rest.subspan(room[i].size());
    }
    call(std::span(inputs).first(inputs_.size()), std::span(room).first(outputs_.size()), context);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::size_t field = outputs_[i];
      const std::span<std::byte> kept = context.scratch->grow(context.scratch->fields[field], room[i].size());
      std::ranges::copy(room[i], kept.begin());
      sample[field] = {.bytes = kept, .shape = operation_.outputs[i].shape};
    }
  }

 private:
  void call(std::span<const UserSample::Input> inputs, std::span<const std::span<std::byte>> room,
            const StepContext& context) const {
    StepContext keyed = context;
    if (!operation_.each_pass_anew) keyed.pass = 0;
    Philox random = keyed.random(number_);
    UserSample sample({.record = context.record, .pass = keyed.pass}, inputs, operation_.outputs, room, random);
    call_user_code(*context.probe, [&] { operation_.function(sample); });
    sample.want_all_written();
    if (!operation_.each_pass_anew && random.next_u32() != keyed.random(number_).next_u32()) {
      throw ConfigError(fmt::format("user_operation '{}' drew random numbers", operation_.name),
                        "set UserOperation::each_pass_anew, and put it after cache()");
    }
  }

  UserOperation operation_;
  std::uint16_t number_;
  std::vector<std::size_t> inputs_, outputs_;  // places in the sample
  std::size_t bytes_ = 0;                      // of all outputs
};

class UserOperationDefinition final : public OperationDefinition {
 public:
  explicit UserOperationDefinition(UserOperation operation) : operation_(std::move(operation)) {}

  CodeName code() const override { return {.name = operation_.name, .version = operation_.version}; }

  std::string describe() const override {
    std::string made;
    for (const Field& output : operation_.outputs) {
      made += fmt::format("{}{} {}", made.empty() ? "" : ", ", output.name, made_text(output));
    }
    return fmt::format("user_operation('{}', version={}, {} -> {}{})", operation_.name, operation_.version,
                       fmt::join(operation_.inputs, ", "), made,
                       operation_.each_pass_anew ? ", each pass again" : "");
  }

  const std::string& field() const noexcept override {
    static const std::string none;
    return none;
  }
  bool is_random() const noexcept override { return operation_.each_pass_anew; }

  Field apply(const Field& before) const override { return before; }

  bool spans_fields() const noexcept override { return true; }

  bool touches(const std::string& name) const override {
    return std::ranges::find(operation_.inputs, name) != operation_.inputs.end() ||
           std::ranges::find(operation_.outputs, name, &Field::name) != operation_.outputs.end();
  }

  Fields apply_to_sample(const Fields& before) const override {
    if (operation_.name.empty()) refuse("it has no name: that is part of the stream's identity");
    if (!operation_.function) refuse("it has no function");
    if (operation_.outputs.empty()) refuse("it has no outputs");
    if (operation_.inputs.size() > kMaxFields) refuse(fmt::format("it has more than {} inputs", kMaxFields));
    for (const std::string& name : operation_.inputs) find_field(before, name);  // refuses missing fields
    Fields after = before;
    for (std::size_t i = 0; i < operation_.outputs.size(); ++i) {
      const Field& output = operation_.outputs[i];
      want_output(i);
      const auto replaced = std::ranges::find(after, output.name, &Field::name);
      if (replaced != after.end()) {
        *replaced = made_of(*replaced, output);
      } else {
        after.push_back(output);
      }
    }
    if (after.size() > kMaxFields) {
      refuse(fmt::format("the sample would have {} fields; {} are possible", after.size(), kMaxFields));
    }
    return after;
  }

  std::unique_ptr<const SampleStep> create_step(std::uint16_t number, const Fields& before) const override {
    return std::make_unique<UserOperationStep>(operation_, number, before, apply_to_sample(before));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw ConfigError(fmt::format("user_operation '{}': {}", operation_.name, why), "see UserOperation");
  }

  void want_output(std::size_t number) const {
    const Field& output = operation_.outputs[number];
    const auto earlier = std::span(operation_.outputs).first(number);
    if (output.name.empty()) refuse(fmt::format("output {} has no name", number));
    if (output.shape.is_dynamic() || output.encoding != Encoding::kRaw) {
      refuse(fmt::format("output '{}' must have a fixed shape and raw elements", output.name));
    }
    if (std::ranges::find(earlier, output.name, &Field::name) != earlier.end()) {
      refuse(fmt::format("two outputs are called '{}'", output.name));
    }
  }

  UserOperation operation_;
};

// The function's result goes through scratch memory, so that an abandoned call never writes to a batch.
class UserMapStep final : public Step {
 public:
  UserMapStep(UserMap map, const OperationPlace& place)
      : map_(std::move(map)), number_(place.number), cached_(place.cached) {}

  bool takes_long() const noexcept override { return true; }

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    const auto bytes = static_cast<std::size_t>(map_.output.shape.elements()) * size_of(map_.output.dtype);
    const std::span<std::byte> result = context.scratch->grow(context.scratch->decoded, bytes);
    Philox random = context.random(number_);
    call_user_code(*context.probe, [&] { map_.function(in.bytes, in.shape, result, random); });
    if (cached_ && random.next_u32() != context.random(number_).next_u32()) {
      throw ConfigError(fmt::format("user_map '{}' before cache() drew random numbers", map_.name),
                        "put cache() before random operations");
    }
    const std::span<std::byte> out = output.take(bytes);
    std::memcpy(out.data(), result.data(), bytes);
    return {.bytes = out, .shape = map_.output.shape};
  }

 private:
  UserMap map_;
  std::uint16_t number_;
  bool cached_;  // must not draw random numbers
};

class UserMapDefinition final : public OperationDefinition {
 public:
  explicit UserMapDefinition(UserMap map) : map_(std::move(map)) {}

  CodeName code() const override { return {.name = map_.name, .version = map_.version}; }

  std::string describe() const override {
    return fmt::format("user_map('{}', version={}, field={}, output={})", map_.name, map_.version, map_.field,
                       made_text(map_.output));
  }

  const std::string& field() const noexcept override { return map_.field; }
  bool may_change() const noexcept override { return true; }  // it may draw

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    if (!map_.function) checks.refuse("it has no function");
    if (map_.output.shape.is_dynamic() || map_.output.encoding != Encoding::kRaw) {
      checks.refuse("its output must have a fixed shape and raw elements");
    }
    return made_of(before, {.name = before.name,
                            .dtype = map_.output.dtype,
                            .shape = map_.output.shape,
                            .layout = map_.output.layout});
  }

  bool compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<UserMapStep>(map_, place), "map user_map '" + map_.name + "'");
    return true;
  }

 private:
  UserMap map_;
};

}  // namespace

void UserSample::put(std::size_t output, std::span<const std::byte> elements) {
  if (elements.size() != room_[output].size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("output '{}' {} {} was given {} bytes instead of {}", outputs_[output].name,
                            to_string(outputs_[output].dtype), outputs_[output].shape.to_string(), elements.size(),
                            room_[output].size()),
                "put all of its elements, or declare another shape");
  }
  std::ranges::copy(elements, room(output).begin());
}

void UserSample::want_all_written() const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if ((written_ >> i & 1U) != 0) continue;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("output '{}' was not written", outputs_[i].name),
                "put it, or fill its room, for every record");
  }
}

OperationPtr define(UserOperation options) {
  return std::make_shared<UserOperationDefinition>(std::move(options));
}

Operations user_operation(UserOperation operation) { return Operation{std::move(operation)}; }

OperationPtr define(UserMap map) { return std::make_shared<UserMapDefinition>(std::move(map)); }

Operations user_map(UserMap map) { return Operation{std::move(map)}; }

}  // namespace headrace
