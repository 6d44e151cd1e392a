// The class of each image of a collection.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources/images/class_rule.h"
#include "headrace/pipeline/sources/images/image_splits.h"

namespace headrace {

// One position in such paths, with the folders at it.
struct ClassLevel {
  std::size_t at = 0;                   // 0: right below the split
  std::vector<std::string_view> names;  // in bytewise order
  bool tells_apart = false;             // some split has more than one of the names
};

// Returns whether all paths have equally many folders. REQUIRES: there is a path.
bool lie_at_one_depth(const PathsBelow& paths);

// Returns the levels of splits whose paths all have equally many folders; all splits share their levels.
std::vector<ClassLevel> levels_of(const std::vector<PathsBelow>& splits);

// Returns the levels that can name classes: those with several names instead of a single one that all images have
// above or below their class. If exactly one level has wnids as names, it is that one.
std::vector<ClassLevel> candidates_of(const std::vector<ClassLevel>& levels);

// Returns whether each file is named by a wnid.
bool are_named_by_wnid(const PathsBelow& paths);
// Returns whether the images of one wnid are in several folders of this level: then the folders are not classes.
bool divides_wnids(const PathsBelow& paths, const ClassLevel& level);

class ImageClasses {
 public:
  // Throws ConfigError if the rule leaves it open and the folders can be read in more than one way. REQUIRES: all
  // arguments outlive it.
  ImageClasses(const ImageSplits& splits, const ClassRule& rule, const std::string& source);

  // Returns the class of image number `i` of a split; std::nullopt if it has none.
  std::optional<std::string_view> class_of(const SplitImages& split, std::size_t i) const;
  // Returns the folder that names the class, 0 being right below the split; none if a wnid in the file's name
  // does.
  const std::optional<std::size_t>& level() const noexcept { return level_; }
  // Returns whether there are images in the split and all of them have a class.
  bool are_known(Part part) const noexcept { return known_[static_cast<std::size_t>(part)]; }

 private:
  bool find_all(const SplitImages& split) const;
  bool lies_like_base(const SplitImages& split) const;
  void recognise();

  [[noreturn]] void fail_at_several_depths() const;
  [[noreturn]] void fail_without_folders() const;
  [[noreturn]] void fail_with_several_levels(const std::vector<ClassLevel>& candidates) const;
  [[noreturn]] void fail_with_divided_wnids(const ClassLevel& level) const;
  void refuse_masks(const ClassLevel& level) const;

  const ImageSplits& splits_;
  const ClassRule& rule_;
  const std::string& source_;
  const SplitImages& base_;
  std::optional<std::size_t> level_;
  std::array<bool, 4> known_{};  // by Part
};

}  // namespace headrace
