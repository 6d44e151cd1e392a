#include "headrace/pipeline/sources/members/member_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/record.h"

namespace headrace {
namespace {

constexpr std::string_view kJsonExtension = "json";

// Returns the position after the first "json" between dots; npos if there is none.
std::size_t end_of_json(const std::string& name) {
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    if (std::string_view(name).substr(at, end - at) == kJsonExtension) return end;
    at = end + 1;
  }
  return std::string::npos;
}

bool is_named_so(std::string_view extension, std::string_view last) {
  return extension == last || (extension.ends_with(last) && extension[extension.size() - last.size() - 1] == '.');
}

[[noreturn]] void refuse_choice(const std::string& source, const std::string& name, const std::string& why,
                                const std::string& hint) {
  throw ConfigError(fmt::format("{}: the member '{}' cannot be taken along: {}", source, name, why), hint);
}

void check_pattern(const MemberChoice& choice, const std::string& text, const std::string& source) {
  const std::string& pattern = choice.member.extension;
  const auto refuse = [&](const std::string& why) {
    refuse_choice(source, choice.name, why, "write FIELD=PATH, as in mask=../masks/{folder}/{stem}_mask.png:mask");
  };
  if (text.find('=') == std::string::npos) refuse("a file of another name needs a field's name");
  if (pattern.find("{stem}") == std::string::npos) refuse("no {stem} says which image it belongs to");
  for (std::size_t at = 0; (at = pattern.find('{', at)) != std::string::npos; ++at) {
    const std::string_view rest = std::string_view(pattern).substr(at);
    if (rest.starts_with("{stem}") || rest.starts_with("{folder}")) continue;
    refuse(fmt::format("'{}' is neither {{stem}} nor {{folder}}", rest.substr(0, rest.find('}') + 1)));
  }
}

void check_member_type(const MemberChoice& choice, const std::string& source) {
  const std::string& extension = choice.member.extension;
  const bool image = is_image_extension(extension) && choice.member.keys.empty();
  if (choice.type == ColumnType::kClass && image) {
    refuse_choice(source, choice.name, "an image names no class", "leave out :class");
  }
  if (choice.type == ColumnType::kMask && !image) {
    refuse_choice(source, choice.name, "only an image is a mask", "name a .png: seg.png:mask");
  }
  if (choice.type == ColumnType::kList && image) {
    refuse_choice(source, choice.name, "it is an image, no list", "leave out :list");
  }
  const bool is_value = choice.type == ColumnType::kNumber || choice.type == ColumnType::kClass;
  if (is_value && is_named_so(extension, kJsonExtension) && choice.member.keys.empty()) {
    refuse_choice(source, choice.name,
                  choice.type == ColumnType::kClass ? "JSON names no class" : "JSON is no number",
                  fmt::format("name a key in it, '{0}.KEY', or take all of it as text: '{0}:text'",
                              choice.member.extension));
  }
}

MemberChoice parse_member_choice(const std::string& text, const std::string& source) {
  const auto is_member = [](const std::string& name) { return name.find_first_of(":=+") == std::string::npos; };
  const bool typed = text.find(':') != std::string::npos;
  const ColumnChoice column = parse_column_choice(text, is_member, source);
  if (column.columns.size() > 1) {
    refuse_choice(source, text, "a field is of one member", "take each along by itself");
  }
  MemberChoice choice{.field = column.field,
                      .name = column.columns.front(),
                      .member = parse_member_name(column.columns.front()),
                      .type = column.type};
  if (is_path_pattern(choice.member.extension)) check_pattern(choice, text, source);
  const std::string& extension = choice.member.extension;
  const bool text_file = extension == "txt" || (is_path_pattern(extension) && is_named_so(extension, "txt"));
  if (!typed && text_file) choice.type = ColumnType::kText;
  check_member_type(choice, source);
  return choice;
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

std::vector<MemberChoice> parse_member_choices(const std::vector<std::string>& more, const std::string& source) {
  std::vector<MemberChoice> choices;
  for (const std::string& text : more) {
    MemberChoice choice = parse_member_choice(text, source);
    const bool taken = choice.field == "image" || choice.field == "label" ||
                       std::ranges::find(choices, choice.field, &MemberChoice::field) != choices.end();
    if (taken) {
      refuse_choice(source, choice.name, fmt::format("a field is called '{}' already", choice.field),
                    "each further member is a field of its name; FIELD=EXTENSION gives it another one");
    }
    choices.push_back(std::move(choice));
  }
  if (choices.size() > kMaxFields - 2) {
    throw ConfigError(
        fmt::format("{}: {} further members: a record has at most {} fields, image and label included", source,
                    choices.size(), kMaxFields),
        "take along those that are needed");
  }
  return choices;
}

}  // namespace headrace
