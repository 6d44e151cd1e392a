// Constants and functions shared by the writer and the reader of tensor files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headrace/devices/base/dtype.h"

namespace headrace::tensor_header {

// Every header begins like this, followed by its own checksum, computed with zeros in place of the digits.
inline constexpr std::string_view kStart = R"({"__metadata__":{"checksum":")";
inline constexpr std::size_t kDigits = 32;
inline constexpr std::string_view kMetadata = "__metadata__", kChecksum = "checksum", kChecksums = "checksums";
// Prefix of the names of zero tensors that make the next one begin where it should.
inline constexpr std::string_view kPadding = "padding:";
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kMaxBytes = 100'000'000;  // as in the safetensors library

// Convert to and from the names of types in safetensors.
const char* name_of(DType dtype) noexcept;
std::optional<DType> dtype_named(std::string_view name) noexcept;

// Returns the checksum of a header, whatever stands in place of its own.
std::string checksum_of(std::string header);

}  // namespace headrace::tensor_header
