#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

constexpr int kMaxClasses = 1 << 20;

class OneHotStep final : public Step {
 public:
  explicit OneHotStep(const OneHot& options) : options_(options) {}

  FieldView run(const FieldView& in, const StepContext& /*context*/, StepOutput& output) const override {
    std::int64_t label = -1;
    if (in.bytes.size() != sizeof label) {
      throw Error(ErrorCode::kDataCorrupt, "a class number of " + std::to_string(in.bytes.size()) + " bytes");
    }
    std::memcpy(&label, in.bytes.data(), sizeof label);
    if (label < 0 || label >= options_.classes) {
      throw Error(
          ErrorCode::kDataCorrupt,
          "label " + std::to_string(label) + " where there are " + std::to_string(options_.classes) + " classes",
          "correct the label, or give one_hot() the number of classes");
    }
    const auto classes = static_cast<std::size_t>(options_.classes);
    const std::span<std::byte> out = output.take(classes * sizeof(float));
    const float others = options_.smoothing / static_cast<float>(options_.classes);
    auto* values = reinterpret_cast<float*>(out.data());
    std::fill(values, values + classes, others);
    values[label] = 1 - options_.smoothing + others;
    return {.bytes = out, .shape = {options_.classes}};
  }

 private:
  OneHot options_;
};

class OneHotDefinition final : public DataOperation<OneHot> {
 public:
  using DataOperation::DataOperation;

  const std::string& field() const noexcept override { return options_.field; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    if (before.dtype != DType::kI64 || before.shape.rank() != 0 || before.encoding != Encoding::kRaw) {
      checks.refuse("a class number, one int64, is needed");
    }
    if (options_.classes < 1 || options_.classes > kMaxClasses) {
      checks.refuse(fmt::format("{} classes; 1 to {} are possible", options_.classes, kMaxClasses));
    }
    if (!(options_.smoothing >= 0 && options_.smoothing <= 1)) {
      checks.refuse("the smoothing is not within 0 and 1");
    }
    Field after = before;
    after.dtype = DType::kF32;
    after.shape = Shape{options_.classes};
    return after;
  }

  bool compile(StepList& steps, const OperationPlace& /*place*/) const override {
    steps.add(std::make_unique<OneHotStep>(options_), describe());
    return true;
  }
};

}  // namespace

OperationPtr define(OneHot options) { return std::make_shared<OneHotDefinition>(std::move(options)); }

Operations one_hot(int classes, float smoothing) {
  return Operation{OneHot{.classes = classes, .smoothing = smoothing}};
}

}  // namespace headrace
