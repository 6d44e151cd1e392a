// Finds the splits among the folders of a collection of images.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/images/class_rule.h"
#include "headrace/pipeline/sources/images/folder_tree.h"
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

}  // namespace headrace
