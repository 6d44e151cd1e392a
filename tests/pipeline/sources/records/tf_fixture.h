// TFRecord files and tf.train.Examples made for tests.
#pragma once

#include <initializer_list>

#include "headrace/devices/base/byte_io.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

inline void append_varint(Bytes& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
  to.push_back(static_cast<std::byte>(value));
}

// A field of bytes: a string or a message.
inline Bytes field(int number, std::span<const std::byte> bytes) {
  Bytes result;
  append_varint(result, static_cast<std::uint64_t>(number) << 3 | 2);
  append_varint(result, bytes.size());
  append(result, bytes);
  return result;
}

inline Bytes entry(const std::string& key, const Bytes& feature) {
  Bytes pair = field(1, to_bytes(key));
  append(pair, field(2, feature));
  return field(1, pair);
}

inline Bytes bytes_feature(std::span<const std::byte> bytes) { return field(1, field(1, bytes)); }

// Several values in one feature.
inline Bytes bytes_feature(std::initializer_list<Bytes> values) {
  Bytes list;
  for (const Bytes& one : values) append(list, field(1, one));
  return field(1, list);
}

inline Bytes packed_feature(std::initializer_list<std::uint64_t> values) {
  Bytes list;
  for (const std::uint64_t one : values) append_varint(list, one);
  return field(3, field(1, list));
}

inline Bytes packed_feature(std::int64_t value) {
  Bytes list;
  append_varint(list, static_cast<std::uint64_t>(value));
  return field(3, field(1, list));
}

inline Bytes float_feature(std::initializer_list<float> values, bool packed = true) {
  Bytes list;
  for (const float value : values) {
    if (!packed) list.push_back(std::byte{1 << 3 | 5});
    const auto bytes = std::as_bytes(std::span(&value, 1));
    list.insert(list.end(), bytes.begin(), bytes.end());
  }
  return field(2, packed ? field(1, list) : list);
}

inline Bytes unpacked_feature(std::int64_t value) {
  Bytes list{std::byte{1 << 3}};
  append_varint(list, static_cast<std::uint64_t>(value));
  return field(3, list);
}

inline Bytes example(std::initializer_list<Bytes> entries) {
  Bytes features;
  for (const Bytes& one : entries) append(features, one);
  return field(1, features);
}

inline void append_number(Bytes& to, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

inline Bytes frame(const Bytes& payload) {
  Bytes record;
  append_number(record, payload.size(), 8);
  append_number(record, mask_crc32c(crc32c(record)), 4);
  append(record, payload);
  append_number(record, mask_crc32c(crc32c(payload)), 4);
  return record;
}

}  // namespace headrace::test
