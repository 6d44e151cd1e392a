#include "headrace/pipeline/dataset.h"

#include <fmt/format.h>

#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

template <typename Value>
std::int64_t integer_of(std::span<const std::byte> bytes, const std::string& field) {
  Value value{};
  if (bytes.size() != sizeof value) {
    throw Error(ErrorCode::kDataCorrupt,
                fmt::format("field '{}' has {} bytes instead of {}", field, bytes.size(), sizeof value));
  }
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

std::span<const std::byte> ExampleView::bytes(const std::string& field) const {
  return view_->fields[find_field(*fields_, field)];
}

Shape ExampleView::shape(const std::string& field) const {
  const std::size_t at = find_field(*fields_, field);
  return shapes_.empty() ? view_of((*fields_)[at], view_->fields[at]).shape : shapes_[at];
}

std::int64_t ExampleView::integer(const std::string& field) const {
  const std::size_t at = find_field(*fields_, field);
  const Field& of = (*fields_)[at];
  if (of.encoding == Encoding::kRaw && of.shape.rank() == 0) {
    if (of.dtype == DType::kI64) return integer_of<std::int64_t>(view_->fields[at], field);
    if (of.dtype == DType::kI32) return integer_of<std::int32_t>(view_->fields[at], field);
    if (of.dtype == DType::kU8) return integer_of<std::uint8_t>(view_->fields[at], field);
  }
  throw ConfigError(
      fmt::format("field '{}' of {} {} is no integer", field, to_string(of.dtype), of.shape.to_string()),
      "read its bytes() instead");
}

}  // namespace headrace
