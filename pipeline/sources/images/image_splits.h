// The splits among the folders of a collection of images, and the images of each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/images/class_rule.h"
#include "headrace/pipeline/sources/images/folder_tree.h"
#include "headrace/pipeline/sources/name_list.h"
#include "headrace/pipeline/sources/split_names.h"

namespace headrace {

struct SplitFolder {
  std::string path;  // with '/' at its end: "set/train/"
  Part part = Part::kUnused;
};

// Returns the folders that the user named, those called like splits beside them, and otherwise the topmost folders
// called like splits that have only folders of one name above them, or whose names differ in the split alone
// (train2017, val2017). Folders that `rule` makes classes are excluded. Empty: there are no splits. Throws
// ConfigError naming `source` if a folder is missing or the splits are ambiguous.
std::vector<SplitFolder> find_split_folders(const FolderTree& tree, const LayoutOptions& layout,
                                            const ClassRule& rule, const std::string& source);

inline constexpr std::array kParts = {Part::kTrain, Part::kTest, Part::kValidation};

// Some of a list's paths without their topmost folders, in bytewise order.
class PathsBelow {
 public:
  PathsBelow(const NameList& paths, std::span<const std::uint32_t> which, std::size_t folders)
      : paths_(&paths), which_(which), folders_(folders) {}

  std::size_t size() const noexcept { return which_.size(); }
  std::string_view operator[](std::size_t i) const {
    std::string_view path = (*paths_)[which_[i]];
    for (std::size_t folder = 0; folder < folders_; ++folder) path.remove_prefix(path.find('/') + 1);
    return path;
  }
  std::string_view front() const { return (*this)[0]; }
  auto all() const {
    return std::views::iota(std::size_t{0}, size()) |
           std::views::transform([this](std::size_t i) { return (*this)[i]; });
  }

 private:
  const NameList* paths_;
  std::span<const std::uint32_t> which_;
  std::size_t folders_;
};

struct SplitImages {
  std::string folder = {};                 // with '/' at its end; empty if there are no splits
  std::vector<std::uint32_t> images = {};  // indices into the paths, in bytewise order of these

  bool empty() const noexcept { return images.empty(); }
  // Returns the number of folders above the split's contents.
  std::size_t depth() const noexcept;
};

class ImageSplits {
 public:
  // The last of equal paths counts. Throws DataError if there is no image, ConfigError if the splits are
  // ambiguous. REQUIRES: `paths` and `source` outlive it.
  ImageSplits(const NameList& paths, const LayoutOptions& layout, const ClassRule& rule,
              const std::string& source);

  // Returns whether there are splits; without them all images are Part::kTrain.
  bool are_there() const noexcept { return are_there_; }
  const SplitImages& of(Part part) const { return splits_[static_cast<std::size_t>(part)]; }
  std::string_view path(std::size_t image) const { return paths_[image]; }
  // Returns the images' paths below the split's folder. REQUIRES: `split` is one of these.
  PathsBelow below(const SplitImages& split) const { return {paths_, split.images, split.depth()}; }
  // Returns the split whose folders show the layout: train if it exists.
  Part base() const;
  std::uint64_t in_none() const noexcept { return in_none_; }
  std::uint64_t without_match() const noexcept { return without_match_; }  // of the rule's pattern
  // Returns the images in hidden folders, by the folder's name.
  const std::map<std::string, std::uint64_t>& hidden() const noexcept { return hidden_; }
  // Returns "; found " and the tree, for messages.
  std::string found() const { return "; found " + to_string(tree_); }

 private:
  void gather(const LayoutOptions& layout);
  void check_depth() const;
  void divide(const LayoutOptions& layout, const ClassRule& rule);
  const NameList& paths_;
  const std::string& source_;
  std::vector<std::uint32_t> images_;  // in bytewise order of their paths
  FolderTree tree_;
  bool are_there_ = false;
  std::array<SplitImages, 4> splits_;  // by Part
  std::uint64_t in_none_ = 0, without_match_ = 0;
  std::map<std::string, std::uint64_t> hidden_;
};

}  // namespace headrace
