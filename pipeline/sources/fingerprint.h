// Computes a source's fingerprint: values chained in order through XXH3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/record.h"

namespace headrace {

class Fingerprint {
 public:
  // `format` names the kind of source and the version of its reading code.
  explicit Fingerprint(std::string_view format) { add(format); }

  Fingerprint& add(std::span<const std::byte> bytes) noexcept {
    value_ = xxh3(bytes, value_);
    return add(std::uint64_t{bytes.size()});
  }
  Fingerprint& add(std::string_view text) noexcept { return add(std::as_bytes(std::span(text))); }
  Fingerprint& add(std::uint64_t value) noexcept {
    // A full-period mix of the chained value and the new one, cheaper than hashing eight bytes.
    value_ = (value_ ^ value) * 0x9E3779B97F4A7C15ULL;
    value_ ^= value_ >> 32;
    return *this;
  }
  Fingerprint& add(const Field& field) {
    add(field.name).add(std::string_view(to_string(field.dtype))).add(field.shape.to_string());
    return layout_of(field) == ImageLayout::kChannelsFirst ? add(std::string_view("channels first")) : *this;
  }

  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace headrace
