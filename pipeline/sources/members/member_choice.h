// The further members of a sample that become fields: what ColumnOptions::columns says of files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources/column_choice.h"

namespace headrace {

// A member, "seg.png", or a value in a JSON member, "json.box" or "meta.json.size.width". Of images in folders
// also a pattern of a path, "../masks/{stem}_mask.png": {stem} is the image's name without its extension, {folder}
// its folder.
struct MemberName {
  std::string extension;          // in lower case: "seg.png", "meta.json"; or the pattern
  std::vector<std::string> keys;  // of a value in JSON, from the outside; none: all of the member
};

struct MemberChoice {
  std::string field;
  std::string name;  // as given: "json.box"
  MemberName member;
  ColumnType type = ColumnType::kNumber;
};

// "a/b.seg.png" is the member "seg.png" of the sample "a/b".
struct SampleFile {
  std::string key, extension;
};
SampleFile split_member_name(const std::string& path);

MemberName parse_member_name(std::string_view text);
// Returns whether a member's extension is a pattern of paths.
bool is_path_pattern(std::string_view extension);
// Returns the name in lower case: extensions are compared without regard to case.
std::string in_lower_case(std::string_view name);
// Returns whether the extension is that of an image, perhaps after another: "png", "seg.png".
bool is_image_extension(std::string_view extension);

// Parses "[FIELD=]EXTENSION[.KEY][:TYPE]", each of `more`. Without a type an image is an image and "txt" is text.
// Throws ConfigError beginning with `source` if two fields, or one and image or label, have one name, if there are
// too many, or if a member cannot be of this type.
std::vector<MemberChoice> parse_member_choices(const std::vector<std::string>& more, const std::string& source);

}  // namespace headrace
