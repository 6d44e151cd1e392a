#include "headrace/pipeline/plan/cached_sample.h"

#include <array>
#include <cstring>
#include <memory>

#include "headrace/devices/base/failures.h"

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

// A shape is made where it stays: a copy right after its extents were written is slow (Shape's constructor).
void read_sample(std::span<const std::byte> sample, SampleView fields) {
  for (FieldView& field : fields) {
    HEADRACE_CHECK(sample.size() >= kUnit, "a cached sample ends early");
    const auto* header = reinterpret_cast<const std::int64_t*>(sample.data());
    const auto bytes = static_cast<std::size_t>(header[0]);
    HEADRACE_CHECK(sample.size() >= kUnit + padded(bytes), "a cached sample ends early");
    field.bytes = sample.subspan(kUnit, bytes);
    std::construct_at(&field.shape, std::span(header + 2, static_cast<std::size_t>(header[1])));
    sample = sample.subspan(kUnit + padded(bytes));
  }
}

}  // namespace headrace
