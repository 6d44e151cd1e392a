#include "headrace/pipeline/sources/image_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_set>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/split_names.h"

namespace headrace {
namespace {

constexpr std::size_t kWnidLength = 9;  // n01440764

constexpr std::array<std::string_view, 3> kRead = {"jpg", "jpeg", "png"};
constexpr std::array<std::string_view, 21> kNotRead = {"arw",  "avif", "bmp", "cr2", "dng",  "exr",  "gif",
                                                       "heic", "heif", "ico", "j2k", "jfif", "jp2",  "jxl",
                                                       "nef",  "pgm",  "ppm", "tga", "tif",  "tiff", "webp"};

constexpr std::array<std::string_view, 5> kTables = {"csv", "tsv", "jsonl", "parquet", "xlsx"};
constexpr std::array<std::string_view, 6> kBeside = {"cls", "json", "npy", "txt", "caption", "xml"};

// Returns "jpg" for "a/b.JPG"; empty for hidden files and those without a dot.
std::string ending_of(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.starts_with('.')) return {};
  std::string ending(name.substr(dot + 1));
  for (char& c : ending) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return ending;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool starts_with_wnid(std::string_view name) {
  return name.size() >= kWnidLength && name[0] == 'n' &&
         std::ranges::all_of(name.substr(1, kWnidLength - 1), is_digit);
}

[[noreturn]] void refuse_pickles(const std::string& source, const char* which) {
  const std::string name = std::string("cifar-") + which;
  throw DataError(ErrorCode::kUnsupported,
                  "holds CIFAR-" + std::string(which) +
                      " as Python pickles, which are not read: use the binary version, " + name +
                      "-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html",
                  {.source = source}, "unpack it, and name the folder with its .bin files");
}

}  // namespace

bool begins_as_image(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return start.starts_with("\xFF\xD8\xFF") || start.starts_with("\x89PNG\r\n\x1A\n");
}

const char* other_image_format(std::span<const std::byte> bytes) noexcept {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (start.starts_with("RIFF") && start.size() >= 12 && start.substr(8, 4) == "WEBP") return "WebP";
  if (start.starts_with("GIF8")) return "GIF";
  if (start.starts_with("BM")) return "BMP";
  if (start.starts_with(std::string_view("II*\0", 4)) || start.starts_with(std::string_view("MM\0*", 4)))
    return "TIFF";
  if (start.size() < 12 || start.substr(4, 4) != "ftyp") return nullptr;
  return start.substr(8, 4) == "avif" ? "AVIF" : start.substr(8, 3) == "hei" ? "HEIC" : nullptr;
}

std::size_t depth_of(std::string_view path) {
  std::size_t names = 1;
  for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) ++names;
  return names;
}

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

bool is_other_image(std::string_view path) {
  return std::ranges::find(kNotRead, ending_of(path)) != kNotRead.end();
}

std::vector<LeftOut> count_other_files(const NameList& paths) {
  const auto stem_of = [](std::string_view path) { return path.substr(0, path.rfind('.')); };
  std::unordered_set<std::string_view> images;
  const auto may_lie_beside = [](const std::string& ending) {
    return std::ranges::find(kBeside, ending) != kBeside.end();
  };
  if (std::ranges::any_of(paths.all(), [&](std::string_view path) { return may_lie_beside(ending_of(path)); })) {
    for (const std::string_view path : paths.all()) {
      if (is_image_path(path)) images.insert(stem_of(path));
    }
  }
  std::map<std::string, std::uint64_t> counts, tables, beside;
  for (const std::string_view path : paths.all()) {
    const std::string ending = ending_of(path);
    if (ending.empty() || std::ranges::find(kRead, ending) != kRead.end() || !hidden_folder_of(path).empty())
      continue;
    if (is_other_image(path)) {
      ++counts["." + ending];
    } else if (std::ranges::find(kTables, ending) != kTables.end()) {
      ++tables["table " + std::string(file_name(path))];
    } else if (may_lie_beside(ending) && images.contains(stem_of(path))) {
      ++beside["beside images, ." + ending];
    }
  }
  std::vector<LeftOut> found;
  for (const auto* of_kind : {&counts, &tables, &beside}) {
    for (const auto& [what, files] : *of_kind) found.push_back({.what = what, .files = files});
  }
  return found;
}

void refuse_cifar_pickles(const NameList& paths, const std::string& source) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(paths.all(), [&](std::string_view path) { return file_name(path) == name; });
  };
  if (std::ranges::any_of(paths.all(), is_image_path)) return;
  if (has("data_batch_1") || has("test_batch")) refuse_pickles(source, "10");
  if (has("meta") && (has("train") || has("test"))) refuse_pickles(source, "100");
}

}  // namespace headrace
