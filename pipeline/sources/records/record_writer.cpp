#include "headrace/pipeline/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::size_t kRecordAlignment = 16;

// Returns the number of which a raw field's bytes must be a multiple, or, if its shape is fixed, exactly equal.
std::size_t unit_of(const Field& field) {
  const Shape one = field.shape.is_dynamic() ? field.shape.without_front() : field.shape;
  return static_cast<std::size_t>(one.elements()) * size_of(field.dtype);
}

bool size_fits(const Field& field, std::size_t bytes) {
  if (field.encoding == Encoding::kImage) return true;
  const std::size_t unit = unit_of(field);
  return field.shape.is_dynamic() ? unit != 0 && bytes % unit == 0 : bytes == unit;
}

}  // namespace

std::span<std::byte> RecordWriter::allocate(std::size_t field, std::size_t bytes) {
  if (field >= fields_->size()) {
    throw ConfigError(fmt::format("field number {} was written; there are {}", field, fields_->size()));
  }
  const Field& of = (*fields_)[field];
  Place& place = places_[field];
  if (place.written) throw ConfigError(fmt::format("field '{}' was written twice", of.name));
  if (!size_fits(of, bytes)) {
    throw ConfigError(fmt::format("field '{}' of {} {} was given {} bytes", of.name, to_string(of.dtype),
                                  of.shape.to_string(), bytes));
  }
  place = {.offset = used_, .size = bytes, .written = true};
  used_ += (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
  if (buffer_->size() < used_) buffer_->resize(used_);
  return std::span(*buffer_).subspan(place.offset, bytes);
}

void RecordWriter::put(std::size_t field, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, allocate(field, bytes.size()).begin());
}

RecordView RecordWriter::view() const {
  RecordView view;
  for (std::size_t i = 0; i < fields_->size(); ++i) {
    if (!places_[i].written) throw ConfigError(fmt::format("field '{}' was not written", (*fields_)[i].name));
    view.fields[i] = std::span<const std::byte>(*buffer_).subspan(places_[i].offset, places_[i].size);
  }
  return view;
}

}  // namespace headrace
