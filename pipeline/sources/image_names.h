// Information in the path of a file, and in its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/name_list.h"

namespace headrace {

// Returns whether the name ends in .jpg, .jpeg or .png and does not start with a dot (as files left by macOS do).
bool is_image_path(std::string_view path);
// Returns whether the bytes begin as a JPEG or PNG file does.
bool begins_as_image(std::span<const std::byte> bytes);
// Returns the format of an image that is not read, "WebP", as its first bytes say; null for any other bytes.
const char* other_image_format(std::span<const std::byte> bytes) noexcept;

// Returns the number of names in a path, the file's included.
std::size_t depth_of(std::string_view path);
// Returns the i-th name of a path; empty beyond its end.
std::string_view name_at(std::string_view path, std::size_t i);
std::string_view file_name(std::string_view path);

// Returns the "n01440764" of ".../n01440764_10026.JPEG"; empty if the file is not named like that.
std::string_view wnid_of(std::string_view path);
// Returns whether a folder is named by a wnid: "n01440764", "n01440764-tench".
bool is_wnid_folder(std::string_view name);

// Returns whether the name is that of an image whose format is not read.
bool is_other_image(std::string_view path);
// Counts the images of formats that Headrace does not read, by file extension: {".gif", 10}, {".webp", 2}; tables,
// which may hold what the images' labels are, by their names, and files with the name of an image but for its
// extension (a/1.json beside a/1.jpg). Not those in hidden folders.
std::vector<LeftOut> count_other_files(const NameList& paths);

// Throws kUnsupported naming the binary version if the files of a folder or an archive are CIFAR's pickles
// (data_batch_1, or train beside meta) without an image among them. `source` is the folder or archive.
void refuse_cifar_pickles(const NameList& paths, const std::string& source);

}  // namespace headrace
