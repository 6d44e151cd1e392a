// Names of members of samples, and of files beside images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// A member, "seg.png", or a value in a JSON member, "json.box" or "meta.json.size.width". Of images in folders
// also a pattern of a path, "../masks/{stem}_mask.png": {stem} is the image's name without its extension, {folder}
// its folder.
struct MemberName {
  std::string extension;          // in lower case: "seg.png", "meta.json"; or the pattern
  std::vector<std::string> keys;  // of a value in JSON, from the outside; none: all of the member
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

// Returns whether an extension is `last`, perhaps after another: "json", "meta.json".
bool is_named_so(std::string_view extension, std::string_view last);

}  // namespace headrace
