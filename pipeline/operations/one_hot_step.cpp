#include "headrace/pipeline/operations/one_hot_step.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

FieldView OneHotStep::run(const FieldView& in, const StepContext& /*context*/, StepOutput& output) const {
  std::int64_t label = -1;
  if (in.bytes.size() != sizeof label) {
    throw Error(ErrorCode::kDataCorrupt, "a class number of " + std::to_string(in.bytes.size()) + " bytes");
  }
  std::memcpy(&label, in.bytes.data(), sizeof label);
  if (label < 0 || label >= options.classes) {
    throw Error(
        ErrorCode::kDataCorrupt,
        "label " + std::to_string(label) + " where there are " + std::to_string(options.classes) + " classes",
        "correct the label, or give one_hot() the number of classes");
  }
  const auto classes = static_cast<std::size_t>(options.classes);
  const std::span<std::byte> out = output.take(classes * sizeof(float));
  const float others = options.smoothing / static_cast<float>(options.classes);
  auto* values = reinterpret_cast<float*>(out.data());
  std::fill(values, values + classes, others);
  values[label] = 1 - options.smoothing + others;
  return {.bytes = out, .shape = {options.classes}};
}

}  // namespace headrace
