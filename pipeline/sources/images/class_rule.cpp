#include "headrace/pipeline/sources/images/class_rule.h"

#include <fmt/format.h>

#include <charconv>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

constexpr const char* kHint =
    "it is a number (1: the topmost folder), parent, none, or a pattern as photos/*/{class} or {class}/{split}";

std::optional<std::size_t> parse_depth(const std::string& text) {
  std::size_t depth = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return depth;
}

[[noreturn]] void refuse_rule(const std::string& text, const std::string& why) {
  throw ConfigError(fmt::format("classes at '{}': {}", text, why), kHint);
}

}  // namespace

ClassRule::ClassRule(const std::string& text) {
  if (text.empty()) return;
  if (const std::optional<std::size_t> depth = parse_depth(text)) {
    if (*depth == 0) refuse_rule(text, "folders are counted from 1");
    kind_ = Kind::kDepth;
    depth_ = *depth;
  } else if (text == "parent") {
    kind_ = Kind::kParent;
  } else if (text == "none") {
    kind_ = Kind::kNone;
  } else {
    parse_pattern(text);
  }
}

void ClassRule::parse_pattern(const std::string& text) {
  kind_ = Kind::kPattern;
  std::string_view rest = text;
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t count = depth_of(rest);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = name_at(rest, i);
    if (name.empty()) refuse_rule(text, "a folder without a name");
    if (name == "{class}") {
      if (depth_ > 0) refuse_rule(text, "{class} stands there twice");
      depth_ = i + 1;
    } else if (name == "{split}") {
      if (split_at_) refuse_rule(text, "{split} stands there twice");
      split_at_ = i;
    }
    names_.emplace_back(name.starts_with('{') ? "*" : name);
    if (name.starts_with('{') && name != "{class}" && name != "{split}") {
      refuse_rule(text, fmt::format("'{}' means nothing", name));
    }
  }
  if (depth_ == 0) refuse_rule(text, "there is no {class} in it");
}

bool ClassRule::matches(std::string_view path) const {
  if (kind_ != Kind::kPattern) return true;
  if (depth_of(path) <= names_.size()) return false;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] != "*" && names_[i] != name_at(path, i)) return false;
  }
  return true;
}

std::optional<std::string_view> ClassRule::class_of(std::string_view path) const {
  const std::size_t folders = depth_of(path) - 1;
  switch (kind_) {
    case Kind::kNone: return std::string_view();
    case Kind::kParent: return folders > 0 ? std::optional(name_at(path, folders - 1)) : std::nullopt;
    case Kind::kRecognised:
    case Kind::kDepth:
    case Kind::kPattern: break;
  }
  return depth_ <= folders ? std::optional(name_at(path, depth_ - 1)) : std::nullopt;
}

std::string_view ClassRule::split_of(std::string_view path) const { return name_at(path, *split_at_); }

}  // namespace headrace
