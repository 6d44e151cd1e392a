#include "headrace/pipeline/sources/images/image_splits.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

// A folder with its parents.
struct Place {
  const FolderTree* parent = nullptr;
  std::string parent_path;  // with '/' at its end, or empty
  const FolderTree* folder = nullptr;

  std::string path() const { return parent_path + std::string(folder->name) + "/"; }
};

std::string split_options() {
  return joined({named("LayoutOptions::train_folder"), named("LayoutOptions::test_folder")}, " or ");
}

class SplitFinder {
 public:
  SplitFinder(const FolderTree& tree, const std::string& source) : tree_(tree), source_(source) {}

  std::vector<SplitFolder> find_named(const LayoutOptions& layout) {
    std::optional<Place> train, test;
    if (!layout.train_folder.empty()) train = place_of(layout.train_folder);
    if (!layout.test_folder.empty()) test = place_of(layout.test_folder);
    if (train && test && (train->path().starts_with(test->path()) || test->path().starts_with(train->path()))) {
      throw ConfigError(source_ + ": the folders '" + layout.train_folder + "' and '" + layout.test_folder +
                            "' lie within each other" + found(),
                        "name two folders of which neither holds the other");
    }
    if (train) folders_.push_back({.path = train->path(), .part = Part::kTrain});
    if (test) folders_.push_back({.path = test->path(), .part = Part::kTest});
    const Place& one = train ? *train : *test;
    for (const FolderTree& beside : one.parent->folders) {
      const std::string path = one.parent_path + std::string(beside.name) + "/";
      const std::optional<Part> part = part_called(beside.name);
      const bool named =
          std::ranges::any_of(folders_, [&](const SplitFolder& folder) { return folder.path.starts_with(path); });
      if (!part || named) continue;
      const bool replaced = (*part == Part::kTrain && train) || (*part == Part::kTest && test);
      folders_.push_back({.path = path, .part = replaced ? Part::kUnused : *part});
    }
    return std::move(folders_);
  }

  std::vector<SplitFolder> find_called(const ClassRule& rule) {
    std::string path;
    std::size_t depth = 1;
    for (const FolderTree* at = &tree_;; at = &at->folders.front(), ++depth) {
      const bool classes =
          rule.kind() == ClassRule::Kind::kParent ? holds_leaves_only(*at) : rule.depth() == depth;
      if (!classes && take_splits(*at, path)) break;
      if (at->here > 0 || at->folders.size() != 1) break;
      path += std::string(at->folders.front().name) + "/";
    }
    return std::move(folders_);
  }

 private:
  std::string found() const { return "; found " + to_string(tree_); }

  static bool holds_leaves_only(const FolderTree& at) {
    return std::ranges::all_of(at.folders, &FolderTree::is_leaf);
  }

  // Returns whether direct subfolders of this one are splits.
  bool take_splits(const FolderTree& at, const std::string& path) {
    std::vector<SplitFolder> alike;  // "train_images", not called like splits
    std::set<std::string> rests;
    for (const FolderTree& folder : at.folders) {
      const std::string folder_path = path + std::string(folder.name) + "/";
      if (const std::optional<Part> part = part_called(folder.name)) {
        folders_.push_back({.path = folder_path, .part = *part});
      } else if (std::optional<PartInName> named = part_in(folder.name)) {
        alike.push_back({.path = folder_path, .part = named->part});
        rests.insert(std::move(named->rest));
      }
    }
    if (folders_.empty() && alike.empty()) return false;
    const auto among = [](const std::vector<SplitFolder>& folders, std::initializer_list<Part> parts) {
      return std::ranges::any_of(folders,
                                 [&](const SplitFolder& one) { return std::ranges::count(parts, one.part) > 0; });
    };
    const auto train = [&](const auto& folders) { return among(folders, {Part::kTrain}); };
    const auto rest = [&](const auto& folders) { return among(folders, {Part::kTest, Part::kValidation}); };
    if (folders_.empty()) {
      const bool splits = train(alike) && rest(alike);
      if (splits && rests.size() == 1 && are_distinct(alike)) {
        folders_ = std::move(alike);
        return true;
      }
      // A class may well be called bullet_train.
      if (splits || among(alike, {Part::kUnused}) || (alike.size() > 1 && alike.size() == at.folders.size())) {
        fail_alike(alike);
      }
      return false;
    }
    check_names();
    if (folders_.size() == at.folders.size() || (train(folders_) && rest(folders_))) return true;
    // Such a name among others: a class may well be called train, but none is called test.
    if (!holds_leaves_only(at) || rest(folders_) || rest(alike)) fail_among_others();
    folders_.clear();
    return false;
  }

  static bool are_distinct(const std::vector<SplitFolder>& folders) {
    std::set<Part> parts;
    return std::ranges::all_of(folders, [&](const SplitFolder& one) { return parts.insert(one.part).second; });
  }

  [[noreturn]] void fail_alike(const std::vector<SplitFolder>& alike) const {
    throw ConfigError(source_ + ": '" + alike[0].path + "'" +
                          (alike.size() > 1 ? " and '" + alike[1].path + "' are" : " is") +
                          " named after splits, and it cannot be told which folder is which split" + found(),
                      "where they are splits, name them with " + split_options() +
                          "; where they are classes, say " + classes_at(alike.front()));
  }

  static std::string classes_at(const SplitFolder& folder) {
    return named("LayoutOptions::classes_at", std::to_string(std::ranges::count(folder.path, '/')));
  }

  void check_names() const {
    for (std::size_t i = 0; i < folders_.size(); ++i) {
      for (std::size_t j = i + 1; j < folders_.size(); ++j) {
        if (folders_[i].part != folders_[j].part) continue;
        throw ConfigError(source_ + ": '" + folders_[i].path + "' and '" + folders_[j].path +
                              "' are both called like one split" + found(),
                          "say which it is with " + split_options());
      }
    }
  }

  [[noreturn]] void fail_among_others() const {
    throw ConfigError(source_ + ": '" + folders_.front().path +
                          "' is called like a split, and the folders beside it are not" + found(),
                      "where it is a class, say " + classes_at(folders_.front()) +
                          "; where it is a split, name the other with " + split_options());
  }

  Place place_of(const std::string& text) const {
    std::string name = text;
    while (name.ends_with('/')) name.pop_back();
    std::vector<Place> places;
    collect(tree_, "", name, places);
    if (places.empty()) throw ConfigError(source_ + ": no images in a folder '" + text + "'" + found());
    if (places.size() > 1) {
      throw ConfigError(source_ + ": several folders are called '" + text + "': " + places[0].path() + ", " +
                            places[1].path() + found(),
                        "name it with the folders above it, as " + places[0].path());
    }
    return places.front();
  }

  // Collects the topmost folders of this name.
  static void collect(const FolderTree& at, const std::string& path, const std::string& name,
                      std::vector<Place>& places) {
    for (const FolderTree& folder : at.folders) {
      Place place{.parent = &at, .parent_path = path, .folder = &folder};
      const std::string inner = place.path();
      if (inner == name + "/" || inner.ends_with("/" + name + "/")) {
        places.push_back(std::move(place));
      } else {
        collect(folder, inner, name, places);
      }
    }
  }

  const FolderTree& tree_;
  const std::string& source_;
  std::vector<SplitFolder> folders_;
};

constexpr std::size_t kMaxDepth = 256;  // names in a path: the tree is walked recursively
constexpr const char* kUnderstood =
    "images may lie as <class>/x.jpg, as train/<class>/x.jpg beside test/ or val/, or as <wnid>_x.JPEG side by "
    "side, below any number of folders";

// Returns the part of a folder at the pattern's {split}.
std::optional<Part> part_named(std::string_view name, const LayoutOptions& layout) {
  if (name == layout.train_folder) return Part::kTrain;
  if (name == layout.test_folder) return Part::kTest;
  const std::optional<Part> part = part_called(name);
  const bool replaced = (part == Part::kTrain && !layout.train_folder.empty()) ||
                        (part == Part::kTest && !layout.test_folder.empty());
  return replaced ? Part::kUnused : part;
}

}  // namespace

std::vector<SplitFolder> find_split_folders(const FolderTree& tree, const LayoutOptions& layout,
                                            const ClassRule& rule, const std::string& source) {
  SplitFinder finder(tree, source);
  if (layout.train_folder.empty() && layout.test_folder.empty()) return finder.find_called(rule);
  return finder.find_named(layout);
}

std::size_t SplitImages::depth() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(folder, '/'));
}

ImageSplits::ImageSplits(const NameList& paths, const LayoutOptions& layout, const ClassRule& rule,
                         const std::string& source)
    : paths_(paths), source_(source) {
  gather(layout);
  check_depth();
  for (const std::uint32_t i : images_) add_to_tree(tree_, paths_[i]);
  divide(layout, rule);
}

void ImageSplits::gather(const LayoutOptions& layout) {
  // A folder that the user names is not hidden.
  const auto is_named = [&](std::string_view folder) {
    return (layout.classes_at + "/" + layout.train_folder + "/" + layout.test_folder).find(folder) !=
           std::string::npos;
  };
  std::size_t others = 0;
  std::string first;  // of the others
  if (paths_.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw ConfigError(source_ + ": has " + count_of(paths_.size(), "file") + ", too many for one data set",
                      "open its folders one by one, and concatenate them");
  }
  for (std::uint32_t i = 0; i < paths_.size(); ++i) {
    const std::string_view path = paths_[i];
    const bool is_image = is_image_path(path);
    const std::string_view hidden = is_image ? hidden_folder_of(path) : std::string_view();
    if (!hidden.empty() && !is_named(hidden)) {
      ++hidden_[std::string(hidden)];
    } else if (is_image) {
      images_.push_back(i);
    } else if (!path.ends_with('/')) {
      if (++others == 1) first = path;
    }
  }
  if (images_.empty()) {
    const std::string found = !hidden_.empty()
                                  ? "all of them are in hidden folders, as " + hidden_.begin()->first + "/"
                              : others == 0 ? "it is empty"
                                            : "found " + count_of(others, "other file") + ", as '" + first + "'";
    throw DataError(ErrorCode::kDataCorrupt, "no image (.jpg, .jpeg, .png) in it; " + found, {.source = source_},
                    std::string(kUnderstood) + "; " + accepted_formats());
  }
  const auto path_of = [&](std::uint32_t i) { return paths_[i]; };
  if (!std::ranges::is_sorted(images_, {}, path_of)) std::ranges::stable_sort(images_, {}, path_of);
  // The last of equal paths counts, as when tar unpacks.
  const auto last = std::unique(images_.rbegin(), images_.rend(),
                                [&](std::uint32_t a, std::uint32_t b) { return paths_[a] == paths_[b]; });
  images_.erase(images_.begin(), last.base());
}

void ImageSplits::check_depth() const {
  if (std::ranges::all_of(images_, [&](std::uint32_t i) { return depth_of(paths_[i]) <= kMaxDepth; })) return;
  throw ConfigError(source_ + ": an image lies below more than " + std::to_string(kMaxDepth - 1) + " folders",
                    kUnderstood);
}

void ImageSplits::divide(const LayoutOptions& layout, const ClassRule& rule) {
  std::vector<SplitFolder> folders;
  if (!rule.names_split()) folders = find_split_folders(tree_, layout, rule, source_);
  are_there_ = rule.names_split() || !folders.empty();
  const SplitFolder whole{.path = {}, .part = Part::kTrain};
  std::array<const SplitFolder*, 4> latest{};
  for (const std::uint32_t i : images_) {
    const std::string_view path = paths_[i];
    if (!rule.matches(path)) {
      ++without_match_;
      continue;
    }
    std::optional<Part> part;
    const SplitFolder* folder = &whole;
    if (rule.names_split()) {
      part = part_named(rule.split_of(path), layout);
    } else {
      const auto found =
          std::ranges::find_if(folders, [&](const SplitFolder& one) { return path.starts_with(one.path); });
      if (found != folders.end()) folder = &*found;
      if (found != folders.end() || folders.empty()) part = folder->part;
    }
    if (part) {
      splits_[static_cast<std::size_t>(*part)].images.push_back(i);
      latest[static_cast<std::size_t>(*part)] = folder;
    } else {
      ++in_none_;
    }
  }
  for (std::size_t part = 0; part < latest.size(); ++part) {
    if (latest[part] != nullptr) splits_[part].folder = latest[part]->path;
  }
  if (without_match_ < images_.size()) return;
  throw ConfigError(source_ + ": no image lies below folders as '" + layout.classes_at + "'" + found(),
                    "a pattern begins at the top of the tree; * is any one folder");
}

Part ImageSplits::base() const {
  for (const Part part : kParts) {
    if (!of(part).empty()) return part;
  }
  return Part::kTrain;
}

}  // namespace headrace
