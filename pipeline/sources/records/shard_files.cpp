#include "headrace/pipeline/sources/records/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/split_names.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxOpen = 256;

constexpr int kMaxChain = 16;  // of folders that hold only one folder

constexpr std::size_t kMaxNamed = 4;  // missing files in a message

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the leading digits from `text` and returns their number.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty() || !is_ascii_digit(text.front())) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string shard_name(const std::filesystem::path& path) { return path.filename().string(); }

// All shards that a name counts, from names that differ only in the index.
class ShardSet {
 public:
  void add(const std::filesystem::path& folder, std::uint64_t index, const std::string& name) {
    const auto [other, is_new] = present_.emplace(index, name);
    if (!is_new) {
      throw DataError(ErrorCode::kDataCorrupt, "has one shard twice: '" + other->second + "' and '" + name + "'",
                      {.source = folder.string()}, "remove the one that is left over");
    }
    example_ = name;
  }

  // REQUIRES: `name` is the name of a shard.
  void check(const std::filesystem::path& folder, const ShardName& name) const {
    std::string missing;
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < name.count && present_.size() < name.count; ++i) {
      if (present_.contains(i)) continue;
      if (++count <= kMaxNamed) missing += (missing.empty() ? "" : ", ") + name_with(name, i);
      if (count > kMaxNamed) break;
    }
    if (count > kMaxNamed) missing += " and more";
    if (count == 0 && present_.rbegin()->first < name.count) return;
    if (count == 0) missing = "none, but '" + present_.rbegin()->second + "' is more";
    throw DataError(ErrorCode::kNotFound,
                    "has " + std::to_string(present_.size()) + " of the " + std::to_string(name.count) +
                        " shards that '" + example_ + "' is one of; missing: " + missing,
                    {.source = folder.string()}, "download or copy what is missing, or name the files to use");
  }

 private:
  // Returns the example's name with its index replaced.
  std::string name_with(const ShardName& name, std::uint64_t index) const {
    const std::size_t digits = example_.find("-of-", name.stem.size()) - name.stem.size() - 1;
    std::string number = std::to_string(index);
    if (number.size() < digits) number.insert(0, digits - number.size(), '0');
    return name.stem + "-" + number + example_.substr(name.stem.size() + 1 + digits);
  }

  std::map<std::uint64_t, std::string> present_;
  std::string example_;
};

}  // namespace

void check_complete(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& files) {
  struct Numbered {
    ShardName name;
    ShardSet set;
  };
  std::map<std::pair<std::string, std::string>, Numbered> sets;  // by stem and ending
  for (const std::filesystem::path& file : files) {
    const std::optional<ShardName> name = parse_shard_name(shard_name(file));
    if (!name) continue;
    Numbered& numbered =
        sets.try_emplace({name->stem, name->ending}, Numbered{.name = *name, .set = {}}).first->second;
    if (numbered.name.count != name->count) {
      throw DataError(ErrorCode::kDataCorrupt,
                      "has shards of two writings: some are of " + std::to_string(numbered.name.count) +
                          ", and '" + shard_name(file) + "' is one of " + std::to_string(name->count),
                      {.source = folder.string()}, "remove those that are left over");
    }
    numbered.set.add(folder, name->index, shard_name(file));
  }
  for (const auto& [key, numbered] : sets) numbered.set.check(folder, numbered.name);
}

ShardFiles::ShardFiles(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)), open_(paths_.size()) {
  if (!paths_.empty() && is_url(paths_.front())) remote::will_open(paths_);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    File file = File::open(paths_[i]);
    bytes_.push_back(file.size());
    revision_.add(file.modified_ns());
    if (paths_.size() <= kMaxOpen || file.is_remote()) open_[i] = std::move(file);
  }
}

void ShardFiles::read_exact(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const {
  if (open_[file]) return open_[file]->read_exact(offset, into);
  File::open(paths_[file]).read_exact(offset, into);
}

void refuse_unfinished(const DirectoryEntry& entry) {
  if (entry.path.filename() != kConversionMarker) return;
  throw DataError(ErrorCode::kDataCorrupt, "holds an unfinished set of shards",
                  {.source = entry.path.parent_path().string()},
                  "repeat the command or call that writes it: it resumes where it stopped");
}

ByteSlabs slabs_for(std::uint64_t packed_bytes) {
  constexpr std::uint64_t kMin = std::uint64_t{1} << 16, kMax = std::uint64_t{1} << 20;
  return ByteSlabs(static_cast<std::size_t>(std::clamp(packed_bytes, kMin, kMax)));
}

std::optional<ShardName> parse_shard_name(std::string_view name) {
  // From the end: a stem may hold numbers, too.
  for (std::size_t of = name.rfind("-of-"); of != std::string_view::npos && of > 0;
       of = name.rfind("-of-", of - 1)) {
    std::string_view after = name.substr(of + 4), before = name.substr(0, of);
    const std::size_t dash = before.rfind('-');
    if (dash == std::string_view::npos) continue;
    std::string_view digits = before.substr(dash + 1);
    const std::optional<std::uint64_t> index = take_number(digits), count = take_number(after);
    if (!index || !count || !digits.empty() || (!after.empty() && after.front() != '.')) continue;
    return ShardName{.stem = std::string(before.substr(0, dash)),
                     .index = *index,
                     .count = *count,
                     .ending = std::string(after)};
  }
  return std::nullopt;
}

bool has_ending(const std::filesystem::path& path, std::span<const std::string> endings) {
  const std::string name = shard_name(path);
  const std::optional<ShardName> shard = parse_shard_name(name);
  return std::ranges::any_of(endings, [&](const std::string& ending) {
    // x.tfrecord-00000-of-00004.gz, too: the rest of the ending follows the numbers.
    return name.ends_with(ending) || (shard && (shard->stem + shard->ending).ends_with(ending));
  });
}

namespace {

// A shard and what its name says.
struct Shard {
  std::filesystem::path path;
  std::string name;  // relative to the data's folder: "train/0.tar"
  std::optional<Part> part = {};

  // Returns whether the user's word is its folder, or its name before the number and the ending.
  bool is_called(std::string_view word) const {
    while (word.ends_with('/')) word.remove_suffix(1);
    if (word == "*" || word == name || name.starts_with(std::string(word) + "/")) return true;
    const std::string file = path.filename().string();
    if (!file.starts_with(word)) return false;
    std::string_view rest = std::string_view(file).substr(word.size());
    while (!rest.empty() && (rest.front() == '-' || rest.front() == '_' || is_ascii_digit(rest.front())))
      rest.remove_prefix(1);
    return rest.empty() || rest.front() == '.' || rest.starts_with("of-");
  }
};

// The shards of a folder, its folders if it has none, or of the only folder in it.
struct ShardFolder {
  std::vector<Shard> shards;
  std::set<std::string> folders;              // of these, where they are in several
  std::vector<std::filesystem::path> beside;  // folders without a shard that is taken
  bool has_images = false;
};

ShardFolder list_shards(const std::filesystem::path& folder, const IsShard& is_shard) {
  ShardFolder found;
  const auto look = [&](const std::filesystem::path& at, const std::string& prefix) {
    std::vector<std::filesystem::path> folders;
    for (const DirectoryEntry& entry : list_directory(at)) {
      refuse_unfinished(entry);
      std::string name = shard_name(entry.path);
      if (is_hidden_name(name)) continue;
      if (entry.is_directory) {
        folders.push_back(entry.path);
      } else if (is_shard(entry.path)) {
        std::optional<PartInName> part = prefix.empty() ? std::nullopt : part_in(prefix);
        if (!part) part = part_in(name);
        found.shards.push_back({.path = entry.path, .name = prefix + name, .part = {}});
        if (part) found.shards.back().part = part->part;
      } else {
        found.has_images = found.has_images || is_image_path(name);
      }
    }
    return folders;
  };
  std::vector<std::filesystem::path> folders = look(folder, {});
  // Links may lead in circles.
  for (int level = 0; level < kMaxChain && found.shards.empty() && !found.has_images && folders.size() == 1;
       ++level) {
    const std::filesystem::path only = folders.front();
    folders = look(only, shard_name(only) + "/");
  }
  if (found.shards.empty() && !found.has_images) {
    // Where no folder is named after a split, there may be very many: of classes.
    const auto is_of_split = [](const std::filesystem::path& at) { return part_in(shard_name(at)).has_value(); };
    if (std::ranges::none_of(folders, is_of_split)) return found;
    for (const std::filesystem::path& at : folders) {
      const std::size_t before = found.shards.size();
      look(at, shard_name(at) + "/");
      if (found.shards.size() > before) found.folders.insert(shard_name(at));
    }
  } else {
    found.beside = std::move(folders);
  }
  return found;
}

// Returns whether images lie below; looks into a few folders, since those of classes all have some.
bool holds_images(const std::filesystem::path& folder, int depth = 0) {
  constexpr int kMaxShardDepth = 4;
  constexpr std::size_t kMaxLookedInto = 16;
  std::size_t looked_into = 0;
  const std::vector<DirectoryEntry> entries = list_directory(folder);
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory && is_image_path(shard_name(entry.path))) return true;
  }
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory || is_hidden_name(shard_name(entry.path)) || depth == kMaxShardDepth) continue;
    if (++looked_into > kMaxLookedInto) break;
    if (holds_images(entry.path, depth + 1)) return true;
  }
  return false;
}

[[noreturn]] void refuse_shards(const std::string& folder, const std::string& what) {
  throw ConfigError(
      folder + ": " + what,
      "say it: " + joined({named("LayoutOptions::train_folder"), named("LayoutOptions::test_folder")}, " and ") +
          " name the shards of a split, by their folder or the beginning of their names; " +
          named("LayoutOptions::train_folder", "'*'") + " takes all for the train split");
}

class ShardSplits {
 public:
  ShardSplits(const std::filesystem::path& folder, std::vector<Shard> shards, const LayoutOptions& layout)
      : folder_(folder.string()), shards_(std::move(shards)), layout_(layout) {}

  FoundShards take(Split split, bool several_folders) {
    const std::string& word = split == Split::kTrain ? layout_.train_folder : layout_.test_folder;
    const std::string& other = split == Split::kTrain ? layout_.test_folder : layout_.train_folder;
    if (!word.empty()) return take_named(split, word);
    if (!other.empty()) std::erase_if(shards_, [&](const Shard& shard) { return shard.is_called(other); });
    return take_by_part(split, several_folders, !other.empty());
  }

 private:
  bool has(std::optional<Part> part) const {
    return std::ranges::find(shards_, part, &Shard::part) != shards_.end();
  }

  FoundShards take_named(Split split, const std::string& word) {
    const auto is_called = [&](const Shard& shard) { return shard.is_called(word); };
    if (std::ranges::none_of(shards_, is_called)) {
      refuse_shards(folder_, fmt::format("no shard is called '{}', or lies in a folder of this name", word));
    }
    return taken(split, fmt::format("as '{}' says", word), is_called);
  }

  FoundShards take_by_part(Split split, bool several_folders, bool others_are_named) {
    const bool train = has(Part::kTrain), rest = has(Part::kTest) || has(Part::kValidation);
    if (has(Part::kUnused)) refuse_unclear(Part::kUnused, "is named after several splits");
    if (!train && !rest) {
      if (split == Split::kTest) {
        throw ConfigError(folder_ + ": no shard is named after the test split: all are the train split",
                          joined({"name them train-..., test-...", advice("name those of the test split with {}",
                                                                          named("LayoutOptions::test_folder"))}));
      }
      if (several_folders && !others_are_named)
        refuse_shards(folder_, "its shards lie in several folders, which are no splits");
      return taken(split, "no name says a split", [](const Shard&) { return true; });
    }
    if (has(std::nullopt) && !(train && rest) && !(others_are_named && split == Split::kTrain && !train)) {
      refuse_unclear(train              ? Part::kTrain
                     : has(Part::kTest) ? Part::kTest
                                        : Part::kValidation,
                     "is named after a split, and the shards beside it are not");
    }
    std::optional<Part> wanted = split == Split::kTrain ? Part::kTrain
                                 : has(Part::kTest)     ? Part::kTest
                                                        : Part::kValidation;
    if (others_are_named && split == Split::kTrain && !train) wanted = std::nullopt;
    if (!has(wanted)) {
      refuse_shards(folder_, fmt::format("no shard is named after the {} split", to_string(*wanted)));
    }
    return taken(split,
                 wanted ? fmt::format("named after {}", to_string(*wanted)) : "those without a split's name",
                 [&](const Shard& shard) { return shard.part == wanted; });
  }

  [[noreturn]] void refuse_unclear(Part part, const char* what) const {
    const auto found = std::ranges::find(shards_, std::optional(part), &Shard::part);
    refuse_shards(folder_, fmt::format("'{}' {}", found->name, what));
  }

  template <typename Wanted>
  FoundShards taken(Split split, const std::string& why, const Wanted& is_wanted) const {
    FoundShards found;
    std::uint64_t in_none = 0;
    std::map<std::string, std::uint64_t> others;
    for (const Shard& shard : shards_) {
      if (is_wanted(shard)) {
        found.paths.push_back(shard.path);
      } else if (shard.part) {
        ++others[to_string(*shard.part)];
      } else {
        ++in_none;
      }
    }
    found.reading = fmt::format("{} split: {} of {}, {}", split == Split::kTrain ? "train" : "test",
                                with_commas(found.paths.size()), count_of(shards_.size(), "shard"), why);
    for (const auto& [part, count] : others) found.reading += fmt::format(" ({}: {})", part, with_commas(count));
    if (in_none > 0)
      found.left_out.push_back({.what = "shards that are not named after a split", .files = in_none});
    return found;
  }

  std::string folder_;
  std::vector<Shard> shards_;
  const LayoutOptions& layout_;
};

}  // namespace

bool has_shards(const std::filesystem::path& folder, const IsShard& is_shard) {
  const ShardFolder found = list_shards(folder, is_shard);
  if (found.shards.empty()) return false;
  return std::ranges::none_of(found.beside, [](const auto& beside) { return holds_images(beside); });
}

FoundShards find_shards(const std::filesystem::path& folder, const IsShard& is_shard, Split split,
                        const LayoutOptions& layout) {
  ShardFolder found = list_shards(folder, is_shard);
  if (found.shards.empty()) return {};
  std::map<std::filesystem::path, std::vector<std::filesystem::path>> by_folder;
  for (const Shard& shard : found.shards) by_folder[shard.path.parent_path()].push_back(shard.path);
  for (const auto& [at, paths] : by_folder) check_complete(at, paths);
  FoundShards taken = ShardSplits(folder, std::move(found.shards), layout).take(split, found.folders.size() > 1);
  for (const std::filesystem::path& at : found.beside) {
    const auto shards = std::ranges::count_if(list_directory(at), [&](const DirectoryEntry& entry) {
      return !entry.is_directory && is_shard(entry.path);
    });
    if (shards > 0) {
      taken.left_out.push_back(
          {.what = "shards in " + shard_name(at) + "/", .files = static_cast<std::uint64_t>(shards)});
    }
  }
  return taken;
}

}  // namespace headrace
