#include <fmt/format.h>

#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step_list.h"
#include "headrace/pipeline/operations/machinery/user_code.h"

namespace headrace {
namespace {

// The function's result goes through scratch memory, so that a call that is given up never writes to a batch.
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
    return fmt::format("user_map('{}', version={}, field={}, output={} {})", map_.name, map_.version, map_.field,
                       to_string(map_.output.dtype), map_.output.shape.to_string());
  }

  const std::string& field() const noexcept override { return map_.field; }
  bool may_change() const noexcept override { return true; }  // it may draw

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    if (!map_.function) checks.refuse("it has no function");
    if (map_.output.shape.is_dynamic() || map_.output.encoding != Encoding::kRaw) {
      checks.refuse("its output must have a fixed shape and raw elements");
    }
    return {.name = before.name, .dtype = map_.output.dtype, .shape = map_.output.shape};
  }

  void compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<UserMapStep>(map_, place), "map user_map '" + map_.name + "'");
  }

 private:
  UserMap map_;
};

}  // namespace

OperationPtr define(UserMap map) { return std::make_shared<UserMapDefinition>(std::move(map)); }

Operations user_map(UserMap map) { return Operation{std::move(map)}; }

}  // namespace headrace
