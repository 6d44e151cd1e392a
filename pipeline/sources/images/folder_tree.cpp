#include "headrace/pipeline/sources/images/folder_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxShown = 4;  // folders beside each other
constexpr int kMaxLevels = 4;         // of folders that lie beside others

std::string inside(const FolderTree& tree, int level);

std::string name_and_content(const FolderTree& tree, int level) {
  return fmt::format("{}/{}{}", tree.name, tree.is_leaf() ? " " : "", inside(tree, level));
}

std::string inside(const FolderTree& tree, int level) {
  if (tree.is_leaf()) return count_of(tree.total, "image");
  if (tree.here == 0 && tree.folders.size() == 1) return name_and_content(tree.folders.front(), level);
  if (level == kMaxLevels) {
    return fmt::format(" {} in {}", count_of(tree.total, "image"), count_of(tree.folders.size(), "folder"));
  }
  std::vector<std::string> parts;
  if (tree.here > 0) parts.push_back(count_of(tree.here, "image"));
  const std::size_t shown = tree.folders.size() <= kMaxShown + 1 ? tree.folders.size() : kMaxShown;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < tree.folders.size(); ++i) {
    if (i < shown) {
      parts.push_back(name_and_content(tree.folders[i], level + 1));
    } else {
      rest += tree.folders[i].total;
    }
  }
  if (shown < tree.folders.size()) {
    parts.push_back(
        fmt::format("{} with {}", count_of(tree.folders.size() - shown, "more folder"), count_of(rest, "image")));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace

void add_to_tree(FolderTree& tree, std::string_view path) {
  ++tree.total;
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) {
    ++tree.here;
    return;
  }
  const std::string_view name = path.substr(0, slash);
  // In sorted paths the contents of one folder are adjacent.
  if (tree.folders.empty() || tree.folders.back().name != name) tree.folders.push_back({.name = name});
  add_to_tree(tree.folders.back(), path.substr(slash + 1));
}

std::string to_string(const FolderTree& tree) { return inside(tree, 0); }

}  // namespace headrace
