#include "headrace/pipeline/plan/cached_sample.h"

#include <array>
#include <cstring>

#include "headrace/devices/base/check.h"

namespace headrace {
namespace {

constexpr std::size_t kUnit = 64;
using Header = std::array<std::int64_t, kUnit / sizeof(std::int64_t)>;
static_assert(2 + Shape::kMaxRank <= static_cast<int>(std::tuple_size_v<Header>));

constexpr std::size_t padded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

}  // namespace

std::size_t appended_bytes(const FieldView& field) noexcept { return kUnit + padded(field.bytes.size()); }

std::size_t append_field(std::vector<std::byte>& sample, std::size_t used, const FieldView& field) {
  Header header{static_cast<std::int64_t>(field.bytes.size()), field.shape.rank()};
  for (int axis = 0; axis < field.shape.rank(); ++axis) {
    header[static_cast<std::size_t>(2 + axis)] = field.shape[axis];
  }
  const std::size_t end = used + appended_bytes(field);
  if (sample.size() < end) sample.resize(end);
  std::memcpy(sample.data() + used, header.data(), sizeof header);
  if (!field.bytes.empty()) std::memcpy(sample.data() + used + kUnit, field.bytes.data(), field.bytes.size());
  return end;
}

FieldView CachedSampleReader::next() {
  Header header;
  HEADRACE_CHECK(rest_.size() >= kUnit, "a cached sample ends early");
  std::memcpy(header.data(), rest_.data(), sizeof header);
  const auto bytes = static_cast<std::size_t>(header[0]);
  HEADRACE_CHECK(rest_.size() >= kUnit + padded(bytes), "a cached sample ends early");
  FieldView field{.bytes = rest_.subspan(kUnit, bytes),
                  .shape = Shape(std::span(header).subspan(2, static_cast<std::size_t>(header[1])))};
  rest_ = rest_.subspan(kUnit + padded(bytes));
  return field;
}

}  // namespace headrace
