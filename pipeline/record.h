// Describes one named field of a record, sample or batch, and one record as a source hands it out: the bytes of
// each field, not yet decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"

namespace HEADRACE_API headrace {

// The names of a field's types and layouts in plans.
constexpr std::array<const char*, 6> choice_names(DType /*of*/) {
  return {"uint8", "int32", "int64", "float16", "bfloat16", "float32"};
}
constexpr std::array<const char*, 2> choice_names(ImageLayout /*of*/) {
  return {"channels_last", "channels_first"};
}

enum class Encoding {
  kRaw,    // elements of `dtype`, in `shape`
  kImage,  // the bytes of a JPEG or PNG file; decoded to u8 (H, W, 3). Of shape (?, ?, 1): a mask, the bytes of a
           // PNG of one channel and up to 8 bits, decoded to its numbers, u8 (H, W, 1)
};

struct Field {
  std::string name = {};  // "image", "label"
  DType dtype = DType::kF32;
  Shape shape;  // of one record; a dynamic extent varies between records
  Encoding encoding = Encoding::kRaw;
  // The place of the channels of an image of three axes, as the plan says it. std::nullopt: last, and refused if
  // has_doubtful_layout(). Extents never decide.
  std::optional<ImageLayout> layout = {};

  bool operator==(const Field& other) const {
    return name == other.name && dtype == other.dtype && shape == other.shape && encoding == other.encoding &&
           layout_of(*this) == layout_of(other);
  }
  // Returns where the channels of an image are.
  friend ImageLayout layout_of(const Field& field) noexcept {
    return field.layout.value_or(ImageLayout::kChannelsLast);
  }
};

// Maximum number of fields per record: what is known of each is kept inline on the hot path.
inline constexpr std::size_t kMaxFields = 64;

// One value for each field of a record, without memory of its own. Values that were not set are T{}. Costs what is
// set, not kMaxFields values.
template <typename T>
class PerField {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  PerField() noexcept {}
  PerField(std::initializer_list<T> values) noexcept {
    for (const T& value : values) (*this)[size_] = value;
  }
  PerField(const PerField& other) noexcept { *this = other; }
  PerField& operator=(const PerField& other) noexcept {
    std::uninitialized_copy_n(other.values_, other.size_, values_);
    size_ = other.size_;
    return *this;
  }

  // REQUIRES: field < kMaxFields.
  T& operator[](std::size_t field) noexcept {
    while (size_ <= field) std::construct_at(values_ + size_++);
    return values_[field];
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // with sanitizers GCC 12 warns of what is not read
  T operator[](std::size_t field) const noexcept { return field < size_ ? values_[field] : T{}; }
#pragma GCC diagnostic pop

  // The values up to the last that was set.
  std::size_t size() const noexcept { return size_; }
  const T* begin() const noexcept { return values_; }
  const T* end() const noexcept { return values_ + size_; }

 private:
  std::size_t size_ = 0;
  union {
    T values_[kMaxFields];
  };
};

using Fields = std::vector<Field>;

// Returns whether nothing says where the channels of these raw elements of three axes are, and the extents
// suggest, as those of (3, 32, 48) and (13, 64, 64), that they come first: what depends on it is then refused.
// That the last extent is 1, 3 or 4 says enough.
bool has_doubtful_layout(const Field& field) noexcept;

// Returns the position of the field with this name. Throws ConfigError listing the existing names.
std::size_t find_field(const Fields& fields, const std::string& name);

// Views into the source's own memory, or into the scratch bytes given to Source::read().
struct RecordView {
  PerField<std::span<const std::byte>> fields;
};

// One field of all records, back to back in memory.
struct FieldColumn {
  const std::byte* data = nullptr;
  std::size_t record_bytes = 0;
};

}  // namespace headrace
