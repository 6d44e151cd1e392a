// What the writer and the reader of tensor files agree on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headrace/devices/base/dtype.h"

namespace headrace::tensor_header {

// Every header begins so; then come the digits of its own checksum, which is computed with zeros in their place.
inline constexpr std::string_view kStart = R"({"__metadata__":{"checksum":")";
inline constexpr std::size_t kDigits = 32;
inline constexpr std::string_view kMetadata = "__metadata__", kChecksum = "checksum", kChecksums = "checksums";
// Tensors of zeros that make the next one begin where it should.
inline constexpr std::string_view kPadding = "padding:";
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kMaxBytes = 100'000'000;  // as in the safetensors library

// safetensors' names.
const char* name_of(DType dtype) noexcept;
std::optional<DType> dtype_named(std::string_view name) noexcept;

// Of a header, whatever stands in the place of its checksum.
std::string checksum_of(std::string header);

}  // namespace headrace::tensor_header
