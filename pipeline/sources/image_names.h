// Information in the path of a file, and in its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/source.h"

namespace headrace {

// Returns whether the name ends in .jpg, .jpeg or .png and does not start with a dot (as files left by macOS do).
bool is_image_path(std::string_view path);
// Returns whether the bytes begin as a JPEG or PNG file does.
bool begins_as_image(std::span<const std::byte> bytes);

// Returns the number of names in a path, the file's included.
std::size_t depth_of(std::string_view path);
// Returns the i-th name of a path; empty beyond its end.
std::string_view name_at(std::string_view path, std::size_t i);
std::string_view file_name(std::string_view path);

// Returns the "n01440764" of ".../n01440764_10026.JPEG"; empty if the file is not named like that.
std::string_view wnid_of(std::string_view path);
// Returns whether a folder is named by a wnid: "n01440764", "n01440764-tench".
bool is_wnid_folder(std::string_view name);

// Counts the images of formats that Headrace does not read, by file extension: {".gif", 10}, {".webp", 2}.
std::vector<LeftOut> count_other_images(const std::vector<std::string>& paths);

}  // namespace headrace
