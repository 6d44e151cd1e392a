#include "headrace/pipeline/stages/step.h"

#include <fmt/format.h>

#include "headrace/devices/base/check.h"

namespace headrace {

std::span<std::byte> StepOutput::take(std::size_t bytes) {
  if (buffer_ != nullptr) {
    if (buffer_->size() < bytes) buffer_->resize(bytes);
    return std::span(*buffer_).first(bytes);
  }
  HEADRACE_CHECK(row_.size() == bytes, fmt::format("a result of {} bytes for a row of {}", bytes, row_.size()));
  return row_;
}

}  // namespace headrace
