#include "headrace/devices/base/shape.h"

#include <algorithm>

#include "headrace/devices/base/check.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// More than any memory holds; their bytes, of any type, and sums of a few such sizes still fit 64 bits.
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 58;

// Extents below 0 are dynamic.
void check_elements(const Shape& shape) {
  std::uint64_t product = 1;
  for (const std::int64_t extent : shape.extents()) {
    const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1));
    if (product > kMaxElements / factor) {
      throw ConfigError("a tensor of shape " + shape.to_string() + " has more than 2^58 elements",
                        "make its extents smaller");
    }
    product *= factor;
  }
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  HEADRACE_CHECK(extents.size() <= kMaxRank, "a tensor has at most 6 axes");
  std::copy(extents.begin(), extents.end(), extents_.begin());
  check_elements(*this);
}

std::int64_t Shape::elements() const noexcept {
  std::int64_t product = 1;
  for (std::int64_t extent : extents()) product *= extent;
  return product;
}

bool Shape::is_dynamic() const noexcept {
  return std::ranges::any_of(extents(), [](std::int64_t extent) { return extent < 0; });
}

Shape Shape::with_front(std::int64_t extent) const {
  HEADRACE_CHECK(rank_ < kMaxRank, "a tensor has at most 6 axes");
  Shape result;
  result.rank_ = rank_ + 1;
  result.extents_[0] = extent;
  std::ranges::copy(extents(), result.extents_.begin() + 1);
  check_elements(result);
  return result;
}

Shape Shape::without_front() const {
  HEADRACE_CHECK(rank_ > 0, "a scalar has no first axis");
  return Shape(extents().subspan(1));
}

bool Shape::operator==(const Shape& other) const noexcept {
  return std::ranges::equal(extents(), other.extents());
}

std::string Shape::to_string() const {
  std::string text = "(";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ", ";
    text += (*this)[axis] < 0 ? "?" : std::to_string((*this)[axis]);
  }
  return text + (rank_ == 1 ? ",)" : ")");
}

}  // namespace headrace
