#include "headrace/pipeline/operations/machinery/label_check.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

LabelCheck::LabelCheck(const Source& source) {
  const SourceInfo& info = source.info();
  count_ = info.label_count > 0 ? info.label_count : info.classes.size();
  const Field label{.name = "label", .dtype = DType::kI64, .shape = {}};
  const auto found = std::ranges::find(info.fields, label);
  if (count_ == 0 || found == info.fields.end()) return;
  const auto field = static_cast<std::size_t>(found - info.fields.begin());
  bool all_hold = !source.columns().empty();
  for (std::uint64_t i = 0; all_hold && i < info.records; ++i) {
    const FieldColumn& column = source.columns()[field];
    all_hold = holds({column.data + i * column.record_bytes, column.record_bytes});
  }
  if (!all_hold) field_ = field;
}

bool LabelCheck::holds(std::span<const std::byte> label) const noexcept {
  std::int64_t value = -1;
  if (label.size() == sizeof value) std::memcpy(&value, label.data(), sizeof value);
  return value >= 0 && static_cast<std::uint64_t>(value) < count_;
}

void LabelCheck::check(std::span<const std::byte> label) const {
  if (holds(label)) return;
  std::int64_t value = -1;
  if (label.size() == sizeof value) std::memcpy(&value, label.data(), sizeof value);
  throw StepError(ErrorCode::kDataCorrupt, "label check",
                  "label " + std::to_string(value) + " where there are " + std::to_string(count_) + " classes",
                  "correct the label, or the list of classes");
}

}  // namespace headrace
