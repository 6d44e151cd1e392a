#include "headrace/pipeline/sources/images/image_classes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>
#include <unordered_map>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {

bool lie_at_one_depth(const PathsBelow& paths) {
  return std::ranges::all_of(
      paths.all(), [depth = depth_of(paths.front())](std::string_view path) { return depth_of(path) == depth; });
}

std::vector<ClassLevel> levels_of(const std::vector<PathsBelow>& splits) {
  std::vector<ClassLevel> levels(depth_of(splits.front().front()) - 1);
  for (std::size_t at = 0; at < levels.size(); ++at) {
    std::set<std::string_view> all;
    for (const PathsBelow& paths : splits) {
      std::set<std::string_view> names;
      std::string_view last;
      for (const std::string_view path : paths.all()) {
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
  return std::ranges::none_of(paths.all(), [](std::string_view path) { return wnid_of(path).empty(); });
}

bool divides_wnids(const PathsBelow& paths, const ClassLevel& level) {
  std::unordered_map<std::string_view, std::string_view> folders;
  std::string_view last_wnid, last_folder;  // sorted paths repeat theirs
  return std::ranges::any_of(paths.all(), [&](std::string_view path) {
    const std::string_view folder = name_at(path, level.at), wnid = wnid_of(path);
    if (wnid == last_wnid && folder == last_folder) return false;
    last_wnid = wnid;
    last_folder = folder;
    return folders.try_emplace(wnid, folder).first->second != folder;
  });
}

namespace {

constexpr std::size_t kMaxNames = 4;  // of classes in a message

std::string some_of(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kMaxNames) return text + ", ...";
    text += (i > 0 ? ", " : "") + std::string(names[i]);
  }
  return text;
}

std::string classes_at(std::string_view level) { return named("LayoutOptions::classes_at", level); }

}  // namespace

ImageClasses::ImageClasses(const ImageSplits& splits, const ClassRule& rule, const std::string& source)
    : splits_(splits), rule_(rule), source_(source), base_(splits.of(splits.base())) {
  if (rule_.kind() == ClassRule::Kind::kRecognised && !base_.empty()) recognise();
  for (const Part part : kParts) known_[static_cast<std::size_t>(part)] = find_all(splits_.of(part));
}

std::optional<std::string_view> ImageClasses::class_of(const SplitImages& split, std::size_t i) const {
  if (rule_.kind() != ClassRule::Kind::kRecognised) return rule_.class_of(splits_.path(split.images[i]));
  const std::string_view below = splits_.below(split)[i];
  const std::string_view name = level_ ? name_at(below, *level_) : wnid_of(below);
  return name.empty() ? std::nullopt : std::optional(name);
}

bool ImageClasses::find_all(const SplitImages& split) const {
  if (split.empty() || (rule_.kind() == ClassRule::Kind::kRecognised && !lies_like_base(split))) return false;
  for (std::size_t i = 0; i < split.images.size(); ++i) {
    if (!class_of(split, i)) return false;
  }
  return true;
}

bool ImageClasses::lies_like_base(const SplitImages& split) const {
  if (split.empty()) return false;
  const PathsBelow below = splits_.below(split);
  return lie_at_one_depth(below) && depth_of(below.front()) == depth_of(splits_.below(base_).front());
}

void ImageClasses::recognise() {
  const PathsBelow base = splits_.below(base_);
  if (!lie_at_one_depth(base)) fail_at_several_depths();
  std::vector<PathsBelow> alike;
  for (const Part part : kParts) {
    if (lies_like_base(splits_.of(part))) alike.push_back(splits_.below(splits_.of(part)));
  }
  const std::vector<ClassLevel> levels = levels_of(alike), candidates = candidates_of(levels);
  const bool wnids = are_named_by_wnid(base);
  if (candidates.empty() && wnids) return;
  if (levels.empty()) fail_without_folders();
  if (candidates.size() > 1) fail_with_several_levels(candidates);
  const ClassLevel& level = candidates.empty() ? levels.back() : candidates.front();
  if (wnids && divides_wnids(base, level)) fail_with_divided_wnids(level);
  refuse_masks(level);
  level_ = level.at;
}

// Images and what belongs to each of them lie in folders of these names: they are no classes.
void ImageClasses::refuse_masks(const ClassLevel& level) const {
  const auto called = [&](std::span<const std::string_view> words) -> std::string_view {
    for (const std::string_view name : level.names) {
      std::string lower(name);
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (std::ranges::any_of(
              words, [&](std::string_view word) { return lower == word || lower == std::string(word) + "s"; }))
        return name;
    }
    return {};
  };
  constexpr std::array<std::string_view, 6> kImages{"image", "img", "jpegimage", "input", "photo", "picture"};
  constexpr std::array<std::string_view, 11> kMasks{
      "mask",         "label",  "annotation",        "gt",    "groundtruth", "seg",
      "segmentation", "target", "segmentationclass", "depth", "output"};
  const std::string_view images = called(kImages), masks = called(kMasks);
  if (images.empty() || masks.empty()) return;
  const std::string depth = std::to_string(base_.depth() + level.at + 1);
  throw ConfigError(source_ + ": '" + std::string(images) + "/' and '" + std::string(masks) +
                        "/' look like images and what belongs to each of them, not like classes" + splits_.found(),
                    "where they are classes, say " + classes_at(depth) +
                        "; else open each folder by itself, with " + classes_at("none") + ", and pair them");
}

void ImageClasses::fail_at_several_depths() const {
  const auto [least, most] = std::ranges::minmax(splits_.below(base_).all(), {}, depth_of);
  throw ConfigError(source_ + ": images lie at several depths, as '" + base_.folder + std::string(least) +
                        "' and '" + base_.folder + std::string(most) +
                        "': it cannot be told which folder names the class" + splits_.found(),
                    "say it: " + classes_at(std::to_string(base_.depth() + 1)) +
                        " (the folder's number from the top), " + classes_at("parent") +
                        " (the one an image lies in), or a pattern as " + classes_at("'photos/*/{class}'"));
}

void ImageClasses::fail_without_folders() const {
  throw ConfigError(
      source_ + ": the images" + (base_.folder.empty() ? "" : " in " + base_.folder) + " lie in no class folder" +
          splits_.found(),
      "put each class into a folder, list the images in a .csv with the columns path and label, or say " +
          classes_at("none") + ": every label is 0");
}

void ImageClasses::fail_with_several_levels(const std::vector<ClassLevel>& candidates) const {
  std::string levels, hint;
  for (const ClassLevel& level : candidates) {
    const std::string depth = std::to_string(base_.depth() + level.at + 1);
    levels += (levels.empty() ? "" : ", or ") + count_of(level.names.size(), "folder name") + " at depth " +
              depth + " (" + some_of(level.names) + ")";
    hint += (hint.empty() ? "" : " or ") + classes_at(depth);
  }
  throw ConfigError(source_ + ": it cannot be told which folders are the classes: " + levels + splits_.found(),
                    "say it: " + hint + "; where folders are splits, name them with " +
                        named("LayoutOptions::train_folder") + " and " + named("LayoutOptions::test_folder"));
}

void ImageClasses::fail_with_divided_wnids(const ClassLevel& level) const {
  throw ConfigError(
      source_ + ": the images are named by their class, as " + std::string(wnid_of(splits_.below(base_).front())) +
          ", and those of one class lie in several folders" + splits_.found(),
      "where the folders are the classes, say " + classes_at(std::to_string(base_.depth() + level.at + 1)) +
          "; where they are parts of one data set, put the images into one folder");
}

}  // namespace headrace
