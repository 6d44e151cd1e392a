#include "headrace/pipeline/sources/arrays/file_elements.h"

#include <bit>
#include <cstring>
#include <limits>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors' bytes are taken to be little-endian");

using ElementKind = FileElement::Kind;

template <typename Value>
Value load_element(const std::byte* from, bool big_endian) {
  std::byte bytes[sizeof(Value)];
  for (std::size_t i = 0; i < sizeof(Value); ++i) bytes[i] = from[big_endian ? sizeof(Value) - 1 - i : i];
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename Result, typename Value>
Result as(Value value) {
  if constexpr (sizeof(Value) == 8 && std::is_same_v<Value, std::uint64_t>) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorCode::kDataCorrupt,
                  "it holds the number " + std::to_string(value) + ", too large for int64");
    }
  }
  return static_cast<Result>(value);
}

template <typename Value, typename Result>
void convert(bool big_endian, std::span<const std::byte> from, std::span<std::byte> to) {
  for (std::size_t i = 0; i < from.size() / sizeof(Value); ++i) {
    const Result result = as<Result>(load_element<Value>(from.data() + i * sizeof(Value), big_endian));
    std::memcpy(to.data() + i * sizeof(Result), &result, sizeof result);
  }
}

// Converts integers of every type to one that holds them.
template <typename Result>
void convert_integers(const FileElement& element, std::span<const std::byte> from, std::span<std::byte> to) {
  const bool is_signed = element.kind == ElementKind::kSigned, big = element.big_endian;
  switch (element.bytes) {
    case 1:
      return is_signed ? convert<std::int8_t, Result>(big, from, to)
                       : convert<std::uint8_t, Result>(big, from, to);
    case 2:
      return is_signed ? convert<std::int16_t, Result>(big, from, to)
                       : convert<std::uint16_t, Result>(big, from, to);
    case 4:
      return is_signed ? convert<std::int32_t, Result>(big, from, to)
                       : convert<std::uint32_t, Result>(big, from, to);
    default:
      return is_signed ? convert<std::int64_t, Result>(big, from, to)
                       : convert<std::uint64_t, Result>(big, from, to);
  }
}

}  // namespace

DType tensor_type_of(const FileElement& element) {
  if (element.kind == ElementKind::kFloat) return element.bytes == 2 ? DType::kF16 : DType::kF32;
  if (element.kind == ElementKind::kUnsigned && element.bytes == 1) return DType::kU8;
  const bool fits = element.bytes < 4 || (element.bytes == 4 && element.kind == ElementKind::kSigned);
  return fits ? DType::kI32 : DType::kI64;
}

bool is_tensor_type(const FileElement& element) {
  if (element.big_endian && element.bytes > 1) return false;
  const bool is_unsigned_word = element.kind == ElementKind::kUnsigned && element.bytes > 1;
  return size_of(tensor_type_of(element)) == element.bytes && !is_unsigned_word;
}

void convert_elements(const FileElement& element, std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.empty()) return;
  if (is_tensor_type(element)) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  switch (tensor_type_of(element)) {
    case DType::kF16:
      return convert<std::uint16_t, std::uint16_t>(element.big_endian, from, to);  // its bytes turned
    case DType::kF32:
      return element.bytes == 8 ? convert<double, float>(element.big_endian, from, to)
                                : convert<float, float>(element.big_endian, from, to);
    case DType::kI32: return convert_integers<std::int32_t>(element, from, to);
    case DType::kI64: return convert_integers<std::int64_t>(element, from, to);
    case DType::kU8:
    case DType::kBF16: break;
  }
  throw Error(ErrorCode::kInternal, "elements of a file without a conversion");
}

void convert_to_i64(const FileElement& element, std::span<const std::byte> from, std::span<std::byte> to) {
  convert_integers<std::int64_t>(element, from, to);
}

}  // namespace headrace
