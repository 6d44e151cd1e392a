#include "headrace/pipeline/sources/images/class_levels.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "headrace/pipeline/sources/image_names.h"

namespace headrace {

bool lie_at_one_depth(const PathsBelow& paths) {
  return std::ranges::all_of(paths, [&](std::string_view path) { return depth_of(path) == depth_of(paths[0]); });
}

std::vector<ClassLevel> levels_of(const std::vector<PathsBelow>& splits) {
  std::vector<ClassLevel> levels(depth_of(splits.front().front()) - 1);
  for (std::size_t at = 0; at < levels.size(); ++at) {
    std::set<std::string_view> all;
    for (const PathsBelow& paths : splits) {
      std::set<std::string_view> names;
      std::string_view last;
      for (const std::string_view path : paths) {
        const std::string_view name = name_at(path, at);
        if (name != last || names.empty()) names.insert(last = name);  // sorted paths repeat theirs
      }
      levels[at].tells_apart = levels[at].tells_apart || names.size() > 1;
      all.merge(names);
    }
    levels[at].at = at;
    levels[at].names.assign(all.begin(), all.end());
  }
  return levels;
}

std::vector<ClassLevel> candidates_of(const std::vector<ClassLevel>& levels) {
  std::vector<ClassLevel> candidates, wnids;
  std::ranges::copy_if(levels, std::back_inserter(candidates), &ClassLevel::tells_apart);
  if (candidates.empty()) {  // one class in each split, but not the same
    std::ranges::copy_if(levels, std::back_inserter(candidates),
                         [](const ClassLevel& level) { return level.names.size() > 1; });
  }
  std::ranges::copy_if(candidates, std::back_inserter(wnids),
                       [](const ClassLevel& level) { return std::ranges::all_of(level.names, is_wnid_folder); });
  return wnids.size() == 1 ? wnids : candidates;
}

bool are_named_by_wnid(const PathsBelow& paths) {
  return std::ranges::none_of(paths, [](std::string_view path) { return wnid_of(path).empty(); });
}

bool divides_wnids(const PathsBelow& paths, const ClassLevel& level) {
  std::unordered_map<std::string_view, std::string_view> folders;
  return std::ranges::any_of(paths, [&](std::string_view path) {
    const std::string_view folder = name_at(path, level.at);
    return folders.try_emplace(wnid_of(path), folder).first->second != folder;
  });
}

}  // namespace headrace
