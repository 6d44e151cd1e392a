#include "headrace/pipeline/sources/image_listing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr const char* kUnderstood =
    "understood are train/<class>/x.jpg beside test/<class>/x.jpg, <class>/x.jpg, and <wnid>_x.JPEG side by side";
constexpr std::size_t kWnidLength = 9;  // n01440764

using Paths = std::vector<std::string>;
using Members = std::vector<std::size_t>;  // indices into Paths

std::size_t depth_of(std::string_view path) { return static_cast<std::size_t>(std::ranges::count(path, '/')) + 1; }

// The i-th name of a path; empty beyond its end.
std::string_view name_at(std::string_view path, std::size_t i) {
  for (; i > 0; --i) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return {};
    path.remove_prefix(slash + 1);
  }
  return path.substr(0, path.find('/'));
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_split_name(std::string_view name) { return name == "train" || name == "test" || name == "val"; }

std::string_view wnid_of(std::string_view path) {
  const std::string_view name = file_name(path);
  const bool matches =
      name.size() > kWnidLength && name[0] == 'n' && name[kWnidLength] == '_' &&
      std::ranges::all_of(name.substr(1, kWnidLength - 1), [](char c) { return c >= '0' && c <= '9'; });
  return matches ? name.substr(0, kWnidLength) : std::string_view();
}

// What the images of a collection have in common.
class Collection {
 public:
  Collection(const Paths& paths, const std::string& source) : paths_(paths), source_(source) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (is_image_path(paths[i])) images_.push_back(i);
    }
    if (images_.empty()) fail_without_images();
    std::ranges::stable_sort(images_, {}, [&](std::size_t i) -> const std::string& { return paths_[i]; });
    // Of equal paths the last one counts, as when tar unpacks.
    const auto last = std::unique(images_.rbegin(), images_.rend(),
                                  [&](std::size_t a, std::size_t b) { return paths_[a] == paths_[b]; });
    images_.erase(images_.begin(), last.base());
    const std::string_view first = name_at(paths_[images_.front()], 0);
    in_one_folder_ = std::ranges::all_of(
        images_, [&](std::size_t i) { return depth_of(paths_[i]) > 1 && name_at(paths_[i], 0) == first; });
  }

  ImageListing lay_out(Split split) const {
    if (const std::optional<std::size_t> root = split_root()) return by_split(*root, split);
    if (split == Split::kTest) {
      throw ConfigError(source_ + ": has no test/ folder: all of its images are the train split", kUnderstood);
    }
    return side_by_side() ? by_wnid() : by_class();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = source_}, kUnderstood);
  }

  [[noreturn]] void fail_without_images() const {
    std::string found = "no image (.jpg, .jpeg, .png) in it; ";
    if (paths_.empty()) {
      found += "it is empty";
    } else {
      found += "found " + std::to_string(paths_.size()) + " other files, as '" + paths_.front() + "'";
    }
    fail(found);
  }

  // How many folders lie above train/ and test/; nothing where there are none of these.
  std::optional<std::size_t> split_root() const {
    for (const std::size_t root : {std::size_t{0}, std::size_t{1}}) {
      if (root == 1 && !in_one_folder_) break;
      const bool found = std::ranges::any_of(images_, [&](std::size_t i) {
        return is_split_name(name_at(paths_[i], root)) && depth_of(paths_[i]) >= root + 3;
      });
      if (found) return root;
    }
    return std::nullopt;
  }

  bool side_by_side() const {
    const std::size_t depth = in_one_folder_ ? 2 : 1;
    return std::ranges::all_of(
        images_, [&](std::size_t i) { return depth_of(paths_[i]) == depth && !wnid_of(paths_[i]).empty(); });
  }

  ImageListing by_split(std::size_t root, Split split) const {
    Members of_splits, wanted;
    const std::string_view name = split == Split::kTrain                               ? "train"
                                  : has_split(root, "test") || !has_split(root, "val") ? "test"
                                                                                       : "val";
    for (const std::size_t i : images_) {
      if (!is_split_name(name_at(paths_[i], root))) continue;  // say, an unlabelled/ beside them
      if (depth_of(paths_[i]) < root + 3) fail("'" + paths_[i] + "' lies in no class folder");
      of_splits.push_back(i);
      if (name_at(paths_[i], root) == name) wanted.push_back(i);
    }
    if (wanted.empty()) throw ConfigError(source_ + ": has no images in " + std::string(name) + "/", kUnderstood);
    return label(of_splits, wanted, [&](std::string_view path) { return name_at(path, root + 1); });
  }

  bool has_split(std::size_t root, std::string_view name) const {
    return std::ranges::any_of(images_, [&](std::size_t i) { return name_at(paths_[i], root) == name; });
  }

  ImageListing by_wnid() const { return label(images_, images_, wnid_of); }

  ImageListing by_class() const {
    const bool deep = std::ranges::all_of(images_, [&](std::size_t i) { return depth_of(paths_[i]) >= 3; });
    const std::size_t root = in_one_folder_ && deep ? 1 : 0;
    for (const std::size_t i : images_) {
      if (depth_of(paths_[i]) < root + 2) fail("'" + paths_[i] + "' lies in no class folder");
    }
    return label(images_, images_, [&](std::string_view path) { return name_at(path, root); });
  }

  template <typename ClassOf>
  ImageListing label(const Members& all, const Members& wanted, const ClassOf& class_of) const {
    std::vector<std::string_view> names;
    for (const std::size_t i : all) {
      const std::string_view name = class_of(paths_[i]);
      if (names.empty() || names.back() != name) names.push_back(name);  // sorted paths come class by class
    }
    std::ranges::sort(names);
    const auto repeated = std::ranges::unique(names);
    names.erase(repeated.begin(), repeated.end());
    ImageListing layout{.classes = {names.begin(), names.end()}, .records = {}};
    layout.records.reserve(wanted.size());
    for (const std::size_t i : wanted) {
      const auto at = std::ranges::lower_bound(names, class_of(std::string_view(paths_[i])));
      layout.records.push_back({.path = i, .label = static_cast<std::uint32_t>(at - names.begin())});
    }
    return layout;
  }

  const Paths& paths_;
  const std::string& source_;
  Members images_;  // in bytewise order of their path
  bool in_one_folder_ = false;
};

}  // namespace

bool is_image_path(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.starts_with('.')) return false;
  std::string extension(name.substr(dot + 1));
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == "jpg" || extension == "jpeg" || extension == "png";
}

bool seems_of_other_split(std::string_view path, Split wanted) {
  for (std::size_t root = 0; root < 2; ++root) {
    const std::string_view name = name_at(path, root);
    if (is_split_name(name)) return (name == "train") != (wanted == Split::kTrain);
  }
  return false;
}

ImageListing lay_out_images(const std::vector<std::string>& paths, Split split, const std::string& source) {
  return Collection(paths, source).lay_out(split);
}

}  // namespace headrace
