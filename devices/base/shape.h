// Extents of a tensor, outermost first, stored inline. Throws ConfigError for more than 2^58 elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"

namespace HEADRACE_API headrace {

class Shape {
 public:
  static constexpr int kMaxRank = 6;
  // An extent that differs from record to record, such as an undecoded image's height.
  static constexpr std::int64_t kDynamic = -1;

  Shape() = default;  // rank 0: a scalar, one element
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int axis) const noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> extents() const noexcept {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  std::int64_t back() const noexcept { return extents_[static_cast<std::size_t>(rank_ - 1)]; }

  // Returns the product of the extents; 1 for a scalar. REQUIRES: !is_dynamic().
  std::int64_t elements() const noexcept;
  bool is_dynamic() const noexcept;

  // Returns this shape with `extent` prepended: {H, W, C} and N give {N, H, W, C}.
  Shape with_front(std::int64_t extent) const;
  // Returns this shape without its first extent.
  Shape without_front() const;

  bool operator==(const Shape& other) const noexcept;

  // Returns "(512, 32, 32, 3)"; a dynamic extent prints as "?".
  std::string to_string() const;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// Throws ConfigError: a tensor that holds elements of one type is read as another. Here, so that modules have it.
[[noreturn]] void refuse_elements(const Shape& shape, DType held, DType wanted);

// (H, W, C) or (C, H, W); for batches (N, H, W, C) or (N, C, H, W).
enum class ImageLayout { kChannelsLast, kChannelsFirst };

}  // namespace headrace
