#include "headrace/train/records/tensor_header.h"

#include <array>
#include <span>
#include <utility>

#include "headrace/devices/base/hash.h"

namespace headrace::tensor_header {
namespace {

constexpr std::array<std::pair<DType, const char*>, 6> kDTypeNames{{{DType::kU8, "U8"},
                                                                    {DType::kI32, "I32"},
                                                                    {DType::kI64, "I64"},
                                                                    {DType::kF16, "F16"},
                                                                    {DType::kBF16, "BF16"},
                                                                    {DType::kF32, "F32"}}};

}  // namespace

const char* name_of(DType dtype) noexcept {
  for (const auto& [each, name] : kDTypeNames) {
    if (each == dtype) return name;
  }
  return "";
}

std::optional<DType> dtype_named(std::string_view name) noexcept {
  for (const auto& [each, its_name] : kDTypeNames) {
    if (name == its_name) return each;
  }
  return std::nullopt;
}

std::string checksum_of(std::string header) {
  header.replace(kStart.size(), kDigits, kDigits, '0');
  return xxh3_128_hex(std::as_bytes(std::span(header)));
}

}  // namespace headrace::tensor_header
