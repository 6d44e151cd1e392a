// Where the paths of images name their classes, told from the names alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// What lies in one split: the paths below its folder, in bytewise order.
using PathsBelow = std::vector<std::string_view>;

// One position in such paths: the folders that stand there.
struct ClassLevel {
  std::size_t at = 0;                   // 0: right below the split
  std::vector<std::string_view> names;  // in bytewise order
  bool tells_apart = false;             // some split has more than one of them
};

// Whether all paths have as many folders.
bool lie_at_one_depth(const PathsBelow& paths);

// The levels of splits whose paths all have as many folders; a split's levels are those of the others.
std::vector<ClassLevel> levels_of(const std::vector<PathsBelow>& splits);

// Those that can name classes: several names stand there, in place of one that all images have above or below
// their class. Where the names of one level alone are wnids it is that one.
std::vector<ClassLevel> candidates_of(const std::vector<ClassLevel>& levels);

// Whether each file is named by a wnid.
bool are_named_by_wnid(const PathsBelow& paths);
// Whether the images of one wnid lie in several folders of this level: then they are no classes.
bool divides_wnids(const PathsBelow& paths, const ClassLevel& level);

}  // namespace headrace
