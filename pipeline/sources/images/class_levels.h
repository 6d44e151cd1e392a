// Finds the class names in the paths of images, from the names alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// The paths below a split's folder, in bytewise order.
using PathsBelow = std::vector<std::string_view>;

// One position in such paths, with the folders at it.
struct ClassLevel {
  std::size_t at = 0;                   // 0: right below the split
  std::vector<std::string_view> names;  // in bytewise order
  bool tells_apart = false;             // some split has more than one of the names
};

// Returns whether all paths have equally many folders.
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

}  // namespace headrace
