#include "headrace/pipeline/sources/members/member_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace headrace {
namespace {

// Returns the position after the first "json" between dots; npos if there is none.
std::size_t end_of_json(const std::string& name) {
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    if (std::string_view(name).substr(at, end - at) == "json") return end;
    at = end + 1;
  }
  return std::string::npos;
}

}  // namespace

std::string in_lower_case(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return lower;
}

SampleFile split_member_name(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.find('.', name);
  if (dot == std::string::npos || dot == name) return {.key = path, .extension = {}};
  return {.key = path.substr(0, dot), .extension = in_lower_case(std::string_view(path).substr(dot + 1))};
}

MemberName parse_member_name(std::string_view text) {
  const bool pattern = is_path_pattern(text);
  std::string name = pattern ? std::filesystem::path(text).lexically_normal().string() : std::string(text);
  if (!pattern && name.starts_with('.')) name.erase(0, 1);
  const std::string lower = in_lower_case(name);
  MemberName member{.extension = pattern ? name : lower, .keys = {}};
  const std::size_t json = end_of_json(lower);
  if (json >= lower.size()) return member;
  member.extension.resize(json);
  for (std::size_t at = json; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at + 1), name.size());
    member.keys.emplace_back(name.substr(at + 1, end - at - 1));
    at = end;
  }
  return member;
}

bool is_image_extension(std::string_view extension) {
  constexpr std::array<std::string_view, 3> kImages = {"jpg", "jpeg", "png"};
  const std::string lower = in_lower_case(extension);
  return std::ranges::any_of(kImages, [&](std::string_view image) { return is_named_so(lower, image); });
}

bool is_path_pattern(std::string_view extension) { return extension.find('{') != std::string_view::npos; }

bool is_named_so(std::string_view extension, std::string_view last) {
  return extension == last || (extension.ends_with(last) && extension[extension.size() - last.size() - 1] == '.');
}

}  // namespace headrace
