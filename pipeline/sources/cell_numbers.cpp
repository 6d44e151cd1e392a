#include "headrace/pipeline/sources/cell_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxQuoted = 40;

[[noreturn]] void refuse_value(const std::string& what) { throw Error(ErrorCode::kDataCorrupt, what); }

std::string_view bare(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

// Returns the text with the words that Python's json.dumps writes for numbers that JSON lacks as null.
std::string with_null_for_nan(std::string_view text) {
  std::string written;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t word = 0;
    for (const std::string_view one : {"NaN", "Infinity", "-Infinity"}) {
      if (!in_string && text.substr(at).starts_with(one)) word = one.size();
    }
    if (in_string && text[at] == '\\') word = std::min<std::size_t>(2, text.size() - at);
    if (text[at] == '"') in_string = !in_string;
    written += word > 0 && !in_string ? "null" : text.substr(at, std::max<std::size_t>(word, 1));
    at += std::max<std::size_t>(word, 1);
  }
  return written;
}

}  // namespace

std::optional<PlainNumber> parse_plain_number(std::string_view text) {
  text = bare(text);
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, integer); at == end && error == std::errc()) {
    return PlainNumber{.value = static_cast<double>(integer), .integer = integer, .plain = true};
  }
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || at != end || text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  PlainNumber number{.value = value};
  if (std::trunc(value) == value && std::abs(value) < kMaxExactInteger) {
    number.integer = static_cast<std::int64_t>(value);
  }
  return number;
}

void CellKind::look_at(std::string_view text) {
  if (!numbers_) return;
  const std::optional<PlainNumber> number = parse_plain_number(text);
  numbers_ = number.has_value();
  plain_ = plain_ && number && number->plain;
}

const char* CellKind::name() const noexcept { return !numbers_ ? "text" : plain_ ? "integers" : "numbers"; }

nlohmann::json parse_json_cell(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return nlohmann::json::parse(with_null_for_nan(text), nullptr, /*allow_exceptions=*/false);
}

void CellNumbers::clear() {
  plain_ = true;
  integers_.clear();
  floats_.clear();
  extents_.clear();
}

void CellNumbers::add(std::int64_t integer) {
  integers_.push_back(integer);
  floats_.push_back(static_cast<float>(integer));
}

void CellNumbers::add(double value) {
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) {
    refuse_value(fmt::format("holds {}, which is beyond what a float32 holds", value));
  }
  plain_ = false;
  integers_.push_back(0);
  floats_.push_back(static_cast<float>(value));
}

void CellNumbers::add_number(std::string_view text) {
  const std::optional<PlainNumber> number = parse_plain_number(text);
  if (!number && text.empty()) refuse_value("is empty");
  if (!number) refuse_value(fmt::format("holds '{}', which is no number", text.substr(0, kMaxQuoted)));
  number->plain ? add(*number->integer) : add(number->value);
}

void CellNumbers::add_text(std::string_view text) {
  constexpr std::string_view kBetween(" \t\r\n,;\0", 7);
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    add_number(word);
  }
  extents_ = {static_cast<std::int64_t>(floats_.size())};
}

void CellNumbers::add_json_at(const nlohmann::json& value, std::size_t depth) {
  if (value.is_array()) {
    const auto length = static_cast<std::int64_t>(value.size());
    if (depth == extents_.size() && floats_.empty()) {
      if (depth == static_cast<std::size_t>(Shape::kMaxRank)) refuse_value("holds arrays in too many arrays");
      extents_.push_back(length);
    }
    if (depth >= extents_.size() || extents_[depth] != length) refuse_value("holds arrays of different lengths");
    for (const nlohmann::json& one : value) add_json_at(one, depth + 1);
    return;
  }
  if (depth != extents_.size()) refuse_value("holds numbers beside arrays");
  if (value.is_boolean()) return add(std::int64_t{value.get<bool>()});
  if (value.is_number_float()) return add(value.get<double>());
  if (!value.is_number_integer()) {
    refuse_value(
        fmt::format("holds {}{}, no number", value.is_null() ? "" : "a value of type ", value.type_name()));
  }
  constexpr auto kMaxInteger = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMaxInteger) return add(value.get<double>());
  add(value.get<std::int64_t>());
}

std::span<const std::byte> CellNumbers::bytes(DType type) const {
  return type == DType::kI64 ? std::as_bytes(std::span(integers_)) : std::as_bytes(std::span(floats_));
}

}  // namespace headrace
