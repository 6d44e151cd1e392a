#include "headrace/pipeline/operations/enumerate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

class EnumerateStep final : public SampleStep {
 public:
  EnumerateStep(std::size_t field, std::size_t place) : field_(field), place_(place) {}

  void run(SampleView sample, const StepContext& context) const override {
    const auto number = static_cast<std::int64_t>(context.numbers[place_]);
    const std::span<std::byte> kept = context.scratch->grow(context.scratch->fields[field_], sizeof number);
    std::memcpy(kept.data(), &number, sizeof number);
    sample[field_] = {.bytes = kept, .shape = {}};
  }

 private:
  std::size_t field_, place_;
};

class EnumerateDefinition final : public OperationDefinition {
 public:
  explicit EnumerateDefinition(Enumeration enumeration) : enumeration_(std::move(enumeration)) {}

  std::string describe() const override {
    if (enumeration_.counted.empty()) return fmt::format("number '{}'", enumeration_.field);
    return fmt::format("number '{}' of {}", enumeration_.field, enumeration_.counted);
  }
  const std::string& field() const noexcept override { return enumeration_.field; }
  bool may_change() const noexcept override { return enumeration_.may_change; }
  Field apply(const Field& before) const override { return before; }

  bool spans_fields() const noexcept override { return true; }
  Fields apply_to_sample(const Fields& before) const override {
    const std::string& name = enumeration_.field;
    if (name.empty()) throw ConfigError("enumerate(): its field has no name", "call it index");
    if (std::ranges::find(before, name, &Field::name) != before.end()) {
      throw ConfigError(fmt::format("enumerate(): there is a field '{}' already", name), "give it another name");
    }
    if (before.size() == kMaxFields) {
      throw ConfigError(fmt::format("enumerate(): a sample has at most {} fields", kMaxFields));
    }
    Fields after = before;
    after.push_back({.name = name, .dtype = DType::kI64, .shape = {}});
    return after;
  }
  std::unique_ptr<const SampleStep> create_step(std::uint16_t /*number*/, const Fields& before) const override {
    return std::make_unique<EnumerateStep>(before.size(), enumeration_.place);
  }

 private:
  Enumeration enumeration_;
};

}  // namespace

OperationPtr define(Enumeration enumeration) {
  return std::make_shared<EnumerateDefinition>(std::move(enumeration));
}

}  // namespace headrace
