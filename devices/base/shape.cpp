#include "headrace/devices/base/shape.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"

namespace headrace {
namespace {

// More than any memory holds; their bytes, of any type, and sums of a few such sizes still fit 64 bits.
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 58;

std::string text_of(std::span<const std::int64_t> extents) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += extents[axis] < 0 ? "?" : std::to_string(extents[axis]);
  }
  return text + (extents.size() == 1 ? ",)" : ")");
}

void want_rank(std::size_t rank) {
  if (rank <= Shape::kMaxRank) return;
  throw ConfigError("an array of " + std::to_string(rank) + " axes: at most 6 are possible",
                    "give up to 5 axes a record, one more counts the examples of a batch; reshape() joins axes");
}

// Copies the extents and checks their product; those below 0 are dynamic. One by one: a copy in vectors would wait
// until the narrower stores that made them have left the processor, behind all non-temporal stores before.
void copy_checked(std::span<const std::int64_t> from, std::int64_t* to) {
  std::uint64_t product = 1;
  for (const std::int64_t extent : from) {
    *to++ = extent;
    const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1));
    if (__builtin_mul_overflow(product, factor, &product) || product > kMaxElements) {
      throw ConfigError("a tensor of shape " + text_of(from) + " has more than 2^58 elements",
                        "make its extents smaller");
    }
  }
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  want_rank(extents.size());
  copy_checked(extents, extents_.data());
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
  want_rank(static_cast<std::size_t>(rank_) + 1);
  std::array<std::int64_t, kMaxRank> all{extent};
  std::ranges::copy(extents(), all.begin() + 1);
  return Shape(std::span(all).first(static_cast<std::size_t>(rank_) + 1));
}

Shape Shape::without_front() const {
  HEADRACE_CHECK(rank_ > 0, "a scalar has no first axis");
  return Shape(extents().subspan(1));
}

bool Shape::operator==(const Shape& other) const noexcept {
  return std::ranges::equal(extents(), other.extents());
}

std::string Shape::to_string() const { return text_of(extents()); }

void refuse_elements(const Shape& shape, DType held, DType wanted) {
  throw ConfigError(std::string("a tensor of ") + headrace::to_string(held) + " of shape " + shape.to_string() +
                        " is read as " + headrace::to_string(wanted),
                    "take its elements by their dtype: as<std::uint8_t>(), as<float>()");
}

}  // namespace headrace
