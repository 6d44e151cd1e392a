#include "headrace/pipeline/sources/shard_files.h"

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::size_t kMostOpen = 256;

bool starts_with_split(const std::filesystem::path& path, const std::string& split) {
  return path.filename().string().starts_with(split);
}

}  // namespace

ShardFiles::ShardFiles(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)), open_(paths_.size()) {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    File file = File::open(paths_[i]);
    bytes_.push_back(file.size());
    revision_.add(file.modified_ns());
    if (paths_.size() <= kMostOpen) open_[i] = std::move(file);
  }
}

void ShardFiles::read_exact(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const {
  if (open_[file]) return open_[file]->read_exact(offset, into);
  File::open(paths_[file]).read_exact(offset, into);
}

std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder,
                                               std::span<const std::string> endings, Split split) {
  std::vector<std::filesystem::path> found;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const std::string name = entry.path.filename().string();
    const bool matches =
        std::ranges::any_of(endings, [&](const std::string& ending) { return name.ends_with(ending); });
    if (!entry.is_directory && matches && !name.starts_with('.')) found.push_back(entry.path);
  }
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(found, [&](const auto& path) { return starts_with_split(path, name); });
  };
  if (!has("train") && !has("test") && !has("val")) {
    if (split == Split::kTest && !found.empty()) {
      throw ConfigError(folder.string() + ": no file's name starts with test: all are the train split",
                        "name them train-..., test-...");
    }
    return found;
  }
  const std::string wanted = split == Split::kTrain ? "train" : has("test") ? "test" : "val";
  std::erase_if(found, [&](const auto& path) { return !starts_with_split(path, wanted); });
  if (found.empty()) throw ConfigError(folder.string() + ": no file's name starts with " + wanted);
  return found;
}

}  // namespace headrace
