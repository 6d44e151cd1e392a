#include "headrace/pipeline/sources/records/shard_files.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxOpen = 256;

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

bool name_starts_with(const std::filesystem::path& path, std::string_view word) {
  return shard_name(path).starts_with(word);
}

using Belongs = bool (*)(const std::filesystem::path& path, std::string_view word);

// Returns whether the name contains the word with no letter beside it; "validation" counts as "val".
bool holds_word(const std::filesystem::path& path, std::string_view word) {
  const std::string name = shard_name(path);
  const auto is_letter = [&](std::size_t i) {
    return i < name.size() && std::isalpha(static_cast<unsigned char>(name[i])) != 0;
  };
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    std::size_t end = at + word.size();
    if (word == "val" && name.compare(at, 10, "validation") == 0) end = at + 10;
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(end)) return true;
  }
  return false;
}

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

}  // namespace

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

std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder, const IsShard& is_shard,
                                               Split split) {
  std::vector<std::filesystem::path> found;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (!entry.is_directory && !shard_name(entry.path).starts_with('.') && is_shard(entry.path)) {
      found.push_back(entry.path);
    }
  }
  check_complete(folder, found);
  for (const Belongs belongs : {&name_starts_with, &holds_word}) {
    const auto has = [&](const char* word) {
      return std::ranges::any_of(found, [&](const auto& path) { return belongs(path, word); });
    };
    if (!has("train") && !has("test") && !has("val")) continue;
    const char* wanted = split == Split::kTrain ? "train" : has("test") ? "test" : "val";
    if (!has(wanted)) throw ConfigError(folder.string() + ": no file's name starts with " + wanted);
    std::erase_if(found, [&](const auto& path) { return !belongs(path, wanted); });
    return found;
  }
  if (split == Split::kTest && !found.empty()) {
    throw ConfigError(folder.string() + ": no file's name starts with test: all are the train split",
                      "name them train-..., test-...");
  }
  return found;
}

}  // namespace headrace
