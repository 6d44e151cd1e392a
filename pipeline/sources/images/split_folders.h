// Which folders of a collection of images are its splits.
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
  kUnused,  // a folder called like a split in whose place the user named another
  kTrain,
  kTest,
  kValidation,
};

struct SplitFolder {
  std::string path;  // with '/' at its end: "set/train/"
  Part part = Part::kUnused;
};

// What a folder of this name holds, whatever its case: train, training; test, testing; val, valid, validation.
std::optional<Part> part_called(std::string_view name);

// The folders that the user named, those called like splits beside them, and otherwise the topmost folders called
// like splits that have nothing but folders of one name above them. Folders that `rule` makes classes are none.
// Empty: there are no splits. ConfigError naming `source` where a folder is not there or it cannot be told what is
// a split.
std::vector<SplitFolder> find_split_folders(const FolderTree& tree, const LayoutOptions& layout,
                                            const ClassRule& rule, const std::string& source);

}  // namespace headrace
