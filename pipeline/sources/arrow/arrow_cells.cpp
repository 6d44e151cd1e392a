#include "headrace/pipeline/sources/arrow/arrow_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

[[noreturn]] void fail_corrupt(const std::string& what) {
  throw Error(ErrorCode::kDataCorrupt, "the Arrow array " + what);
}

template <typename Value>
Value value_at(const void* buffer, std::int64_t index) {
  Value value;
  std::memcpy(&value, static_cast<const std::byte*>(buffer) + index * static_cast<std::int64_t>(sizeof(Value)),
              sizeof value);
  return value;
}

bool bit_at(const void* bits, std::int64_t index) {
  return (value_at<std::uint8_t>(bits, index / 8) >> (index % 8) & 1) != 0;
}

bool may_be_null(const ArrowArray& array) noexcept {
  return array.null_count != 0 && array.n_buffers > 0 && array.buffers[0] != nullptr;
}

bool is_null_at(const ArrowArray& array, std::int64_t index) {
  return may_be_null(array) && !bit_at(array.buffers[0], index + array.offset);
}

std::int64_t arrow_buffers(const ArrowType& type) {
  switch (type.kind) {
    case ArrowKind::kNumbers:
    case ArrowKind::kBits:
    case ArrowKind::kDictionary:
    case ArrowKind::kList: return 2;
    case ArrowKind::kBytes: return 3;
    case ArrowKind::kFixedList:
    case ArrowKind::kStruct: return 1;
    case ArrowKind::kOther: break;
  }
  return 0;
}

// Checks what an array says of itself.
void check_form(const ArrowType& type, const ArrowArray& array) {
  const std::int64_t children = type.is_list()                    ? 1
                                : type.kind == ArrowKind::kStruct ? std::ssize(type.children)
                                                                  : 0;
  const bool has_values = (type.kind == ArrowKind::kDictionary) == (array.dictionary != nullptr);
  const bool fits = array.length >= 0 && array.offset >= 0 && array.n_buffers >= arrow_buffers(type) &&
                    array.n_children >= children && has_values;
  if (!fits) fail_corrupt(fmt::format("of column '{}' is not of the type in the schema", type.name));
  if (array.length == 0 || arrow_buffers(type) < 2) return;
  if (array.buffers[1] == nullptr) fail_corrupt(fmt::format("of column '{}' has no values", type.name));
}

std::int64_t offset_at(ArrowLayout layout, const ArrowArray& array, std::int64_t index) {
  return layout == ArrowLayout::kOffsets64 ? value_at<std::int64_t>(array.buffers[1], index + array.offset)
                                           : value_at<std::int32_t>(array.buffers[1], index + array.offset);
}

// A view: its length, then either the bytes themselves or a prefix of them, a buffer and an offset.
std::span<const std::byte> viewed_bytes(const ArrowArray& array, std::int64_t index) {
  constexpr std::int64_t kViewBytes = 16, kInline = 12;
  const auto* view = static_cast<const std::byte*>(array.buffers[1]) + (index + array.offset) * kViewBytes;
  const std::int64_t size = value_at<std::int32_t>(view, 0);
  if (size < 0) fail_corrupt("has a value of negative length");
  if (size <= kInline) return {view + 4, static_cast<std::size_t>(size)};
  const std::int64_t buffer = value_at<std::int32_t>(view, 2), offset = value_at<std::int32_t>(view, 3);
  const std::int64_t buffers = array.n_buffers - 3;  // validity and views before them, their sizes after them
  const void* sizes = array.buffers[array.n_buffers - 1];
  const bool fits = buffer >= 0 && buffer < buffers && offset >= 0 && sizes != nullptr &&
                    offset <= value_at<std::int64_t>(sizes, buffer) - size;
  if (!fits) fail_corrupt("has a view beyond its buffers");
  return {static_cast<const std::byte*>(array.buffers[2 + buffer]) + offset, static_cast<std::size_t>(size)};
}

std::span<const std::byte> bytes_at(const ArrowType& type, const ArrowArray& array, std::int64_t index) {
  if (type.layout == ArrowLayout::kViews) return viewed_bytes(array, index);
  const std::int64_t begin = offset_at(type.layout, array, index), end = offset_at(type.layout, array, index + 1);
  if (begin < 0 || end < begin) fail_corrupt("has offsets that decrease");
  return {static_cast<const std::byte*>(array.buffers[2]) + begin, static_cast<std::size_t>(end - begin)};
}

std::int64_t dictionary_index(const ArrowType& type, const ArrowArray& array, std::int64_t index) {
  std::int64_t entry = 0;
  const auto bytes = static_cast<std::int64_t>(type.element.bytes);
  const auto* data = static_cast<const std::byte*>(array.buffers[1]) + (index + array.offset) * bytes;
  convert_to_i64(type.element, {data, type.element.bytes}, std::as_writable_bytes(std::span(&entry, 1)));
  if (entry < 0 || entry >= array.dictionary->length) fail_corrupt("has an index beyond its dictionary");
  return entry;
}

// Appends `count` elements from `first` on, booleans as bytes.
void append_elements(const ArrowType& type, const ArrowArray& array, std::int64_t first, std::int64_t count,
                     DType dtype, std::vector<std::byte>& to) {
  const std::size_t before = to.size(), elements = static_cast<std::size_t>(count);
  to.resize(before + elements * size_of(dtype));
  const std::span<std::byte> room = std::span(to).subspan(before);
  std::vector<std::byte> bits;
  FileElement element = type.element;
  const std::byte* data = nullptr;
  if (type.kind == ArrowKind::kBits) {
    for (std::int64_t i = 0; i < count; ++i) {
      bits.push_back(std::byte{bit_at(array.buffers[1], first + i + array.offset)});
    }
    element = {};
    data = bits.data();
  } else {
    data = static_cast<const std::byte*>(array.buffers[1]) +
           (first + array.offset) * static_cast<std::int64_t>(element.bytes);
  }
  const std::span<const std::byte> from(data, elements * element.bytes);
  if (dtype == tensor_type_of(element)) return convert_elements(element, from, room);
  if (dtype == DType::kI64) return convert_to_i64(element, from, room);
  for (std::size_t i = 0; i < elements; ++i) {
    std::int64_t integer = 0;
    convert_to_i64(element, from.subspan(i * element.bytes, element.bytes),
                   std::as_writable_bytes(std::span(&integer, 1)));
    const auto number = static_cast<float>(integer);
    std::memcpy(room.data() + i * sizeof number, &number, sizeof number);
  }
}

}  // namespace

const ArrowType& type_at(const ArrowType& root, const ArrowPath& path) {
  const ArrowType* type = &root;
  for (const std::size_t child : path) type = &type->children[child];
  return *type;
}

ArrowCells::ArrowCells(const ArrowType& root, const ArrowPath& path, const ArrowArray& batch) : type_(&root) {
  const ArrowArray* array = &batch;
  for (const std::size_t child : path) {
    check_form(*type_, *array);
    around_.push_back({array, shift_});
    shift_ += array->offset;
    const std::int64_t rows = array->length;
    array = array->children[child];
    type_ = &type_->children[child];
    if (array->length < rows)
      fail_corrupt(fmt::format("of column '{}' has fewer rows than its batch", type_->name));
  }
  const ArrowType* type = type_;
  for (;; type = &type->children.front(), array = array->children[0]) {
    check_form(*type, *array);
    levels_.push_back(array);
    if (!type->is_list()) break;
  }
  if (type->kind == ArrowKind::kDictionary) check_form(type->children.front(), *array->dictionary);
}

bool ArrowCells::may_have_nulls() const noexcept {
  const ArrowArray* dictionary = leaf().dictionary;
  return std::ranges::any_of(around_, [](const Around& one) { return may_be_null(*one.array); }) ||
         std::ranges::any_of(levels_, [](const ArrowArray* one) { return may_be_null(*one); }) ||
         (dictionary != nullptr && may_be_null(*dictionary));
}

bool ArrowCells::is_null(std::int64_t row) const {
  for (const Around& one : around_) {
    if (is_null_at(*one.array, row + one.shift)) return true;
  }
  Range range = at(row);
  const ArrowType* type = type_;
  for (std::size_t level = 0;; ++level, type = &type->children.front()) {
    const ArrowArray& array = *levels_[level];
    for (std::int64_t i = range.begin; may_be_null(array) && i < range.end; ++i) {
      if (is_null_at(array, i)) return true;
    }
    if (level + 1 == levels_.size()) break;
    range = within(level, *type, range);
  }
  if (type->kind != ArrowKind::kDictionary || !may_be_null(*leaf().dictionary)) return false;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    if (is_null_at(*leaf().dictionary, dictionary_index(*type, leaf(), i))) return true;
  }
  return false;
}

std::span<const std::byte> ArrowCells::bytes(std::int64_t row) const {
  const std::int64_t index = row + shift_;
  if (type_->kind != ArrowKind::kDictionary) return bytes_at(*type_, top(), index);
  return bytes_at(type_->children.front(), *top().dictionary, dictionary_index(*type_, top(), index));
}

ArrowCells::Range ArrowCells::within(std::size_t level, const ArrowType& type, Range range) const {
  const ArrowArray& array = *levels_[level];
  Range children;
  if (type.kind == ArrowKind::kFixedList) {
    children = {(range.begin + array.offset) * type.width, (range.end + array.offset) * type.width};
  } else if (range.size() > 0) {
    children = {offset_at(type.layout, array, range.begin), offset_at(type.layout, array, range.end)};
  }
  const bool fits =
      children.begin >= 0 && children.begin <= children.end && children.end <= levels_[level + 1]->length;
  if (!fits) fail_corrupt("has lists beyond their values");
  return children;
}

ArrowCells::Range ArrowCells::elements(std::int64_t row) const {
  Range range = at(row);
  const ArrowType* type = type_;
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level, type = &type->children.front()) {
    range = within(level, *type, range);
  }
  return range;
}

void ArrowCells::extents(std::int64_t row, std::vector<std::int64_t>& extents) const {
  extents.clear();
  Range range = at(row);
  const ArrowType* type = type_;
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level, type = &type->children.front()) {
    const Range inner = within(level, *type, range);
    std::int64_t extent = range.size() > 0 ? inner.size() / range.size() : 0;
    for (std::int64_t i = range.begin; i < range.end && type->kind == ArrowKind::kList; ++i) {
      if (within(level, *type, {i, i + 1}).size() != extent) extent = kUneven;
    }
    extents.push_back(extent);
    extents.insert(extents.end(), type->tensor_shape.begin(), type->tensor_shape.end());
    if (!type->tensor_shape.empty()) extents.erase(extents.end() - std::ssize(type->tensor_shape) - 1);
    range = inner;
  }
}

std::span<const std::byte> ArrowCells::slice(std::int64_t row) const {
  const Range range = elements(row);
  const auto bytes = static_cast<std::int64_t>(type_->innermost().element.bytes);
  const auto* data = static_cast<const std::byte*>(leaf().buffers[1]);
  return {data + (range.begin + leaf().offset) * bytes, static_cast<std::size_t>(range.size() * bytes)};
}

void ArrowCells::append(std::int64_t row, DType dtype, std::vector<std::byte>& to) const {
  const Range range = elements(row);
  const ArrowType& type = type_->innermost();
  if (type.kind != ArrowKind::kDictionary) {
    return append_elements(type, leaf(), range.begin, range.size(), dtype, to);
  }
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    append_elements(type.children.front(), *leaf().dictionary, dictionary_index(type, leaf(), i), 1, dtype, to);
  }
}

}  // namespace headrace
