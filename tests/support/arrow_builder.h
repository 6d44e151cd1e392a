// Arrow's arrays made by hand, in every layout that is read, and streams of them.
#pragma once

#include "headrace/pipeline/arrow_structs.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// An array and its type.
struct ArrowNode {
  std::string format;
  std::string name = {};
  std::int64_t length = 0;
  std::int64_t offset = 0;
  std::optional<Bytes> valid = {};  // a bitmap
  std::vector<Bytes> buffers = {};  // those after the validity
  std::vector<ArrowNode> children = {};
  std::vector<ArrowNode> dictionary = {};  // none or one
  std::string metadata = {};               // as in the schema
};

template <typename Value>
Bytes bytes_of_values(const std::vector<Value>& values) {
  return to_bytes(std::as_bytes(std::span(values)));
}

inline Bytes bitmap_of(const std::vector<bool>& bits) {
  Bytes bytes(bits.size() / 8 + 1);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i / 8] |= static_cast<std::byte>(1 << (i % 8));
  }
  return bytes;
}

template <typename Value>
ArrowNode numbers(std::string name, std::string format, const std::vector<Value>& values) {
  return {.format = std::move(format),
          .name = std::move(name),
          .length = std::ssize(values),
          .buffers = {bytes_of_values(values)}};
}

inline ArrowNode booleans(std::string name, const std::vector<bool>& values) {
  return {.format = "b", .name = std::move(name), .length = std::ssize(values), .buffers = {bitmap_of(values)}};
}

template <typename Offset>
Bytes offsets_of(const std::vector<std::int64_t>& lengths) {
  std::vector<Offset> offsets{0};
  for (const std::int64_t length : lengths) offsets.push_back(static_cast<Offset>(offsets.back() + length));
  return bytes_of_values(offsets);
}

// Format "u", "U", "vu", "z", "Z" or "vz".
inline ArrowNode texts(std::string name, const std::string& format, const std::vector<std::string>& values) {
  ArrowNode node{.format = format, .name = std::move(name), .length = std::ssize(values)};
  std::vector<std::int64_t> lengths;
  Bytes data, views;
  for (const std::string& value : values) {
    const auto size = static_cast<std::int32_t>(value.size()), at = static_cast<std::int32_t>(data.size());
    lengths.push_back(size);
    std::byte view[16] = {};
    std::memcpy(view, &size, 4);
    std::memcpy(view + 4, value.data(), std::min<std::size_t>(value.size(), size <= 12 ? 12 : 4));
    if (size > 12) std::memcpy(view + 12, &at, 4);
    views.insert(views.end(), view, view + 16);
    if (size > 12 || format[0] != 'v')
      data.insert(data.end(), reinterpret_cast<const std::byte*>(value.data()),
                  reinterpret_cast<const std::byte*>(value.data()) + size);
  }
  if (format[0] == 'v') {
    node.buffers = {views, data, bytes_of_values(std::vector<std::int64_t>{std::ssize(data)})};
  } else {
    const bool is_large = format == "U" || format == "Z";
    node.buffers = {is_large ? offsets_of<std::int64_t>(lengths) : offsets_of<std::int32_t>(lengths), data};
  }
  return node;
}

inline ArrowNode lists(std::string name, const std::vector<std::int64_t>& lengths, ArrowNode values,
                       bool is_large = false) {
  return {.format = is_large ? "+L" : "+l",
          .name = std::move(name),
          .length = std::ssize(lengths),
          .buffers = {is_large ? offsets_of<std::int64_t>(lengths) : offsets_of<std::int32_t>(lengths)},
          .children = {std::move(values)}};
}

inline ArrowNode fixed_lists(std::string name, std::int64_t width, ArrowNode values) {
  return {.format = "+w:" + std::to_string(width),
          .name = std::move(name),
          .length = values.length / width,
          .children = {std::move(values)}};
}

inline ArrowNode structs(std::string name, std::vector<ArrowNode> children) {
  const std::int64_t length = children.front().length;
  return {.format = "+s", .name = std::move(name), .length = length, .children = std::move(children)};
}

// Indices of type int32 into `values`.
inline ArrowNode dictionary(std::string name, const std::vector<std::int32_t>& indices, ArrowNode values) {
  ArrowNode node = numbers(std::move(name), "i", indices);
  node.dictionary = {std::move(values)};
  return node;
}

inline ArrowNode with_nulls(ArrowNode node, const std::vector<bool>& valid) {
  node.valid = bitmap_of(valid);
  return node;
}

inline ArrowNode sliced(ArrowNode node, std::int64_t from, std::int64_t length) {
  node.offset += from;
  node.length = length;
  return node;
}

// The encoding of a schema's metadata.
inline std::string metadata(const std::string& key, const std::string& value) {
  std::string bytes;
  const auto add = [&](std::size_t number) {
    const auto word = static_cast<std::int32_t>(number);
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  add(1);
  for (const std::string& text : {key, value}) {
    add(text.size());
    bytes += text;
  }
  return bytes;
}

// Gives the batches, which must be of one type, then fails with `error` if it is not empty. `live` counts what has
// not been released yet: the stream and its arrays.
ArrowArrayStream stream_of(std::vector<ArrowNode> batches, std::shared_ptr<int> live = std::make_shared<int>(0),
                           std::string error = {});

}  // namespace headrace::test
