// Finds the splits among the folders of a collection of images.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/images/class_rule.h"
#include "headrace/pipeline/sources/images/folder_tree.h"

namespace headrace {

enum class Part {
  kUnused,  // a folder named like a split for which the user named another
  kTrain,
  kTest,
  kValidation,
};

struct SplitFolder {
  std::string path;  // with '/' at its end: "set/train/"
  Part part = Part::kUnused;
};

// Returns the part named by a folder, in any case: train, training; test, testing; val, valid, validation.
std::optional<Part> part_called(std::string_view name);

// Returns the folders that the user named, those named like splits beside them, and otherwise the topmost folders
// named like splits that have only folders of one name above them. Folders that `rule` makes classes are excluded.
// Empty: there are no splits. Throws ConfigError naming `source` if a folder is missing or the splits are
// ambiguous.
std::vector<SplitFolder> find_split_folders(const FolderTree& tree, const LayoutOptions& layout,
                                            const ClassRule& rule, const std::string& source);

}  // namespace headrace
