#include "headrace/pipeline/sources/images/image_splits.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxDepth = 256;  // names in a path: the tree is walked recursively
constexpr const char* kUnderstood =
    "images may lie as <class>/x.jpg, as train/<class>/x.jpg beside test/ or val/, or as <wnid>_x.JPEG side by "
    "side, below any number of folders";

// Returns the part of a folder at the pattern's {split}.
std::optional<Part> part_named(std::string_view name, const LayoutOptions& layout) {
  if (name == layout.train_folder) return Part::kTrain;
  if (name == layout.test_folder) return Part::kTest;
  const std::optional<Part> part = part_called(name);
  const bool replaced = (part == Part::kTrain && !layout.train_folder.empty()) ||
                        (part == Part::kTest && !layout.test_folder.empty());
  return replaced ? Part::kUnused : part;
}

}  // namespace

std::size_t SplitImages::depth() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(folder, '/'));
}

ImageSplits::ImageSplits(const std::vector<std::string>& paths, const LayoutOptions& layout, const ClassRule& rule,
                         const std::string& source)
    : paths_(paths), source_(source) {
  gather(layout);
  check_depth();
  std::vector<std::string_view> sorted;
  sorted.reserve(images_.size());
  for (const std::size_t i : images_) sorted.emplace_back(paths_[i]);
  tree_ = make_folder_tree(sorted);
  divide(layout, rule);
}

void ImageSplits::gather(const LayoutOptions& layout) {
  // A folder that the user names is not hidden.
  const auto is_named = [&](std::string_view folder) {
    return (layout.classes_at + "/" + layout.train_folder + "/" + layout.test_folder).find(folder) !=
           std::string::npos;
  };
  std::size_t others = 0;
  std::string first;  // of the others
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::string_view hidden = is_image_path(paths_[i]) ? hidden_folder_of(paths_[i]) : std::string_view();
    if (!hidden.empty() && !is_named(hidden)) {
      ++hidden_[std::string(hidden)];
    } else if (is_image_path(paths_[i])) {
      images_.push_back(i);
    } else if (!paths_[i].ends_with('/')) {
      if (++others == 1) first = paths_[i];
    }
  }
  if (images_.empty()) {
    const std::string found = !hidden_.empty()
                                  ? "all of them are in hidden folders, as " + hidden_.begin()->first + "/"
                              : others == 0 ? "it is empty"
                                            : "found " + count_of(others, "other file") + ", as '" + first + "'";
    throw DataError(ErrorCode::kDataCorrupt, "no image (.jpg, .jpeg, .png) in it; " + found, {.source = source_},
                    std::string(kUnderstood) + "; " + accepted_formats());
  }
  std::ranges::stable_sort(images_, {}, [&](std::size_t i) -> const std::string& { return paths_[i]; });
  // The last of equal paths counts, as when tar unpacks.
  const auto last = std::unique(images_.rbegin(), images_.rend(),
                                [&](std::size_t a, std::size_t b) { return paths_[a] == paths_[b]; });
  images_.erase(images_.begin(), last.base());
}

void ImageSplits::check_depth() const {
  if (std::ranges::all_of(images_, [&](std::size_t i) { return depth_of(paths_[i]) <= kMaxDepth; })) return;
  throw ConfigError(source_ + ": an image lies below more than " + std::to_string(kMaxDepth - 1) + " folders",
                    kUnderstood);
}

void ImageSplits::divide(const LayoutOptions& layout, const ClassRule& rule) {
  std::vector<SplitFolder> folders;
  if (!rule.names_split()) folders = find_split_folders(tree_, layout, rule, source_);
  are_there_ = rule.names_split() || !folders.empty();
  for (const std::size_t i : images_) {
    const std::string& path = paths_[i];
    if (!rule.matches(path)) {
      ++without_match_;
    } else if (rule.names_split()) {
      const std::optional<Part> part = part_named(rule.split_of(path), layout);
      part ? put(*part, {}, i) : static_cast<void>(++in_none_);
    } else if (folders.empty()) {
      put(Part::kTrain, {}, i);
    } else {
      const auto folder =
          std::ranges::find_if(folders, [&](const SplitFolder& one) { return path.starts_with(one.path); });
      folder != folders.end() ? put(folder->part, folder->path, i) : static_cast<void>(++in_none_);
    }
  }
  if (without_match_ < images_.size()) return;
  throw ConfigError(source_ + ": no image lies below folders as '" + layout.classes_at + "'" + found(),
                    "a pattern begins at the top of the tree; * is any one folder");
}

void ImageSplits::put(Part part, const std::string& folder, std::size_t image) {
  SplitImages& split = splits_[static_cast<std::size_t>(part)];
  split.folder = folder;
  split.images.push_back(image);
  split.below.push_back(std::string_view(paths_[image]).substr(folder.size()));
}

Part ImageSplits::base() const {
  for (const Part part : kParts) {
    if (!of(part).empty()) return part;
  }
  return Part::kTrain;
}

}  // namespace headrace
