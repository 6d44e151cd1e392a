// The folders that contain images, with the number in each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct FolderTree {
  std::string_view name = {};  // of the folder, empty at the top
  std::uint64_t here = 0;      // images right in it
  std::uint64_t total = 0;     // those and all below
  std::vector<FolderTree> folders = {};

  bool is_leaf() const noexcept { return folders.empty(); }
};

// Adds the path of an image. REQUIRES: paths are added in bytewise order and outlive the tree.
void add_to_tree(FolderTree& tree, std::string_view path);

// Returns the tree on one line: "set/{train/{cat/ 4 images, dog/ 3 images}, val/ 2 images}". Of many sibling
// folders the first few are named; for deeply nested ones only the images are counted.
std::string to_string(const FolderTree& tree);

}  // namespace headrace
