#include "headrace/pipeline/sources/members/member_numbers.h"

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

template <typename Value>
bool parse_all(std::string_view text, Value& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
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

nlohmann::json parse_json_member(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return nlohmann::json::parse(with_null_for_nan(text), nullptr, /*allow_exceptions=*/false);
}

void MemberNumbers::clear() {
  plain_ = true;
  integers_.clear();
  floats_.clear();
  extents_.clear();
}

void MemberNumbers::add(std::int64_t integer) {
  integers_.push_back(integer);
  floats_.push_back(static_cast<float>(integer));
}

void MemberNumbers::add(double value) {
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) {
    refuse_value(fmt::format("holds {}, which is beyond what a float32 holds", value));
  }
  plain_ = false;
  integers_.push_back(0);
  floats_.push_back(static_cast<float>(value));
}

void MemberNumbers::add_text(std::string_view text) {
  constexpr std::string_view kBetween(" \t\r\n,;\0", 7);
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    const std::string_view bare =
        word.starts_with('+') && word.size() > 1 && word[1] != '-' ? word.substr(1) : word;
    std::int64_t integer = 0;
    double value = 0;
    if (parse_all(bare, integer)) {
      add(integer);
    } else if (parse_all(bare, value)) {
      add(value);
    } else {
      refuse_value(fmt::format("holds '{}', which is no number", word.substr(0, kMaxQuoted)));
    }
  }
  extents_ = {static_cast<std::int64_t>(floats_.size())};
}

void MemberNumbers::add_json(const nlohmann::json& value) { add_json_at(value, 0); }

void MemberNumbers::add_json_at(const nlohmann::json& value, std::size_t depth) {
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

std::span<const std::byte> MemberNumbers::bytes(DType type) const {
  return type == DType::kI64 ? std::as_bytes(std::span(integers_)) : std::as_bytes(std::span(floats_));
}

}  // namespace headrace
