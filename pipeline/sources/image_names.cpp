#include "headrace/pipeline/sources/image_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace headrace {
namespace {

constexpr std::size_t kWnidLength = 9;  // n01440764

constexpr std::array<std::string_view, 3> kRead = {"jpg", "jpeg", "png"};
constexpr std::array<std::string_view, 21> kNotRead = {"arw",  "avif", "bmp", "cr2", "dng",  "exr",  "gif",
                                                       "heic", "heif", "ico", "j2k", "jfif", "jp2",  "jxl",
                                                       "nef",  "pgm",  "ppm", "tga", "tif",  "tiff", "webp"};

// Returns "jpg" for "a/b.JPG"; empty for hidden files and those without a dot.
std::string ending_of(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.starts_with('.')) return {};
  std::string ending(name.substr(dot + 1));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool starts_with_wnid(std::string_view name) {
  return name.size() >= kWnidLength && name[0] == 'n' &&
         std::ranges::all_of(name.substr(1, kWnidLength - 1), is_digit);
}

}  // namespace

bool begins_as_image(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return start.starts_with("\xFF\xD8\xFF") || start.starts_with("\x89PNG\r\n\x1A\n");
}

std::size_t depth_of(std::string_view path) { return static_cast<std::size_t>(std::ranges::count(path, '/')) + 1; }

std::string_view name_at(std::string_view path, std::size_t i) {
  for (; i > 0; --i) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return {};
    path.remove_prefix(slash + 1);
  }
  return path.substr(0, path.find('/'));
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view wnid_of(std::string_view path) {
  const std::string_view name = file_name(path);
  return starts_with_wnid(name) && name.substr(kWnidLength).starts_with('_') ? name.substr(0, kWnidLength)
                                                                             : std::string_view();
}

bool is_wnid_folder(std::string_view name) {
  return starts_with_wnid(name) && (name.size() == kWnidLength || !is_digit(name[kWnidLength]));
}

bool is_image_path(std::string_view path) { return std::ranges::find(kRead, ending_of(path)) != kRead.end(); }

std::vector<LeftOut> count_other_images(const std::vector<std::string>& paths) {
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& path : paths) {
    const std::string ending = ending_of(path);
    if (std::ranges::find(kNotRead, ending) != kNotRead.end()) ++counts["." + ending];
  }
  std::vector<LeftOut> found;
  for (const auto& [ending, files] : counts) found.push_back({.what = ending, .files = files});
  return found;
}

}  // namespace headrace
