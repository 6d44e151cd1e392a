#include "headrace/train/step/number_probe.h"

#include <cmath>
#include <utility>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/device.h"

namespace headrace {

std::optional<std::size_t> first_not_finite(const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return std::nullopt;
}

void NumberProbe::look(std::string what, const TensorView& tensor, std::int64_t elements) {
  const std::size_t look = looks_++;
  const bool numbers = tensor.dtype == DType::kF32 || tensor.dtype == DType::kBF16;
  if (!tensor.defined() || !numbers || elements == 0) return;
  const std::size_t count = static_cast<std::size_t>(elements), bytes = count * size_of(tensor.dtype);
  if (copies_.empty() || copies_.back().size() < bytes) {
    copies_.push_back(stream_.device().allocate_pinned(bytes));
  }
  std::byte* copy = copies_.back().data();
  stream_.copy(copy, tensor.data, bytes);
  stream_.call(
      [this, copy, count, tensor, what = std::move(what), look] { examine(copy, count, tensor, what, look); });
}

void NumberProbe::examine(const std::byte* copy, std::size_t elements, const TensorView& tensor,
                          const std::string& what, std::size_t look) {
  if (found_) return;
  std::vector<float> widened_values;
  const auto* values = reinterpret_cast<const float*>(copy);
  if (tensor.dtype == DType::kBF16) {
    const auto* narrow = reinterpret_cast<const BFloat16*>(copy);
    for (std::size_t i = 0; i < elements; ++i) widened_values.push_back(widened(narrow[i]));
    values = widened_values.data();
  }
  const std::optional<std::size_t> at = first_not_finite(values, elements);
  if (!at) return;
  found_ = Found{.look = look,
                 .what = what,
                 .shape = tensor.shape,
                 .element = static_cast<std::int64_t>(*at),
                 .value = values[*at]};
}

}  // namespace headrace
