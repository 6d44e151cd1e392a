#include "headrace/pipeline/sources/images/image_listing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_set>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/images/class_rule.h"
#include "headrace/pipeline/sources/images/image_classes.h"
#include "headrace/pipeline/sources/images/image_splits.h"

namespace headrace {
namespace {

class Collection {
 public:
  Collection(const NameList& paths, const std::string& source, const LayoutOptions& layout)
      : paths_(paths),
        source_(source),
        layout_(layout),
        rule_(layout.classes_at),
        splits_(paths, layout, rule_, source),
        classes_(splits_, rule_, source) {}

  ImageListing lay_out(Split split) const {
    const Part wanted = splits_.are_there() ? part_for(split) : whole(split);
    check(wanted);
    ImageListing listing = label(wanted);
    list_left_out(listing);
    listing.reading = reading(wanted) + listing.reading;
    return listing;
  }

 private:
  Part whole(Split split) const {
    if (split == Split::kTrain) return Part::kTrain;
    throw ConfigError(
        source_ + ": has no test/ folder: all of its images are the train split",
        joined({advice("name the folder of the test split with {}", named("LayoutOptions::test_folder")),
                advice("read all of them with {}", named("split", "train"))}));
  }

  Part part_for(Split split) const {
    const auto is_there = [&](Part part) { return !splits_.of(part).empty(); };
    if (split == Split::kTrain) {
      if (is_there(Part::kTrain)) return Part::kTrain;
      throw ConfigError(
          source_ + ": has no images in train/" + splits_.found(),
          advice("name the folder of the train split with {}", named("LayoutOptions::train_folder")));
    }
    if (is_there(Part::kTest) && !validation_is_test()) return Part::kTest;
    if (is_there(Part::kValidation)) return Part::kValidation;
    throw ConfigError(source_ + ": has no images in test/ or val/" + splits_.found(),
                      advice("name the folder of the test split with {}", named("LayoutOptions::test_folder")));
  }

  // val/ stands for test/ if there is no test/ with classes, unless the user named one.
  bool validation_is_test() const {
    return layout_.test_folder.empty() && !is_known(Part::kTest) && is_known(Part::kValidation);
  }

  bool is_known(Part part) const { return classes_.are_known(part); }

  void check(Part wanted) const {
    if (is_known(wanted)) return;
    const SplitImages& split = splits_.of(wanted);
    if (rule_.kind() == ClassRule::Kind::kRecognised) {
      throw ConfigError(source_ + ": the images in " + split.folder + " (" + with_commas(split.images.size()) +
                            ") do not lie in class folders as those in " + splits_.of(splits_.base()).folder +
                            " do: their classes are not known" + splits_.found(),
                        "sort them into a folder a class, or list them in a .csv with the columns path and label");
    }
    const auto without = std::ranges::find_if(
        split.images, [&](std::uint32_t i) { return !rule_.class_of(paths_[i]).has_value(); });
    throw ConfigError(source_ + ": '" + std::string(paths_[*without]) +
                          "' has no folder that names its class with " +
                          named("LayoutOptions::classes_at", layout_.classes_at) + splits_.found(),
                      "a pattern as " + named("LayoutOptions::classes_at", "'*/{class}'") +
                          " leaves out what does not match it");
  }

  ImageListing label(Part wanted) const {
    std::vector<std::string_view> names;
    for (const Part part : kParts) {
      if (is_known(part)) add_classes(splits_.of(part), names);
    }
    std::ranges::sort(names);
    const auto repeated = std::ranges::unique(names);
    names.erase(repeated.begin(), repeated.end());
    ImageListing listing{.classes = {}, .records = {}};
    add_empty_classes(names, listing);
    if (names.size() == 1 && rule_.kind() == ClassRule::Kind::kRecognised) fail_with_one_class(names.front());
    const SplitImages& split = splits_.of(wanted);
    if (rule_.kind() != ClassRule::Kind::kNone) listing.classes.assign(names.begin(), names.end());
    listing.records.reserve(split.images.size());
    auto at = names.begin();  // sorted paths come class by class
    for (std::size_t i = 0; i < split.images.size(); ++i) {
      const std::string_view name = *classes_.class_of(split, i);
      if (*at != name) at = std::ranges::lower_bound(names, name);
      listing.records.push_back(
          {.path = split.images[i], .label = static_cast<std::uint32_t>(at - names.begin())});
    }
    return listing;
  }

  void add_classes(const SplitImages& split, std::vector<std::string_view>& names) const {
    for (std::size_t i = 0; i < split.images.size(); ++i) {
      const std::string_view name = *classes_.class_of(split, i);
      if (names.empty() || names.back() != name) names.push_back(name);  // sorted paths come class by class
    }
  }

  // Adds folders beside those of classes that are empty or hold images that are not read: their number is theirs
  // whether they have images yet or not. Folders of other files are left out.
  void add_empty_classes(std::vector<std::string_view>& names, ImageListing& listing) const {
    std::unordered_set<std::string_view> parents;  // of class folders
    for (const Part part : kParts) {
      if (!is_known(part) || rule_.kind() == ClassRule::Kind::kNone) continue;
      const SplitImages& split = splits_.of(part);
      std::string_view parent;
      for (std::size_t i = 0; i < split.images.size(); ++i) {
        const std::string_view path = paths_[split.images[i]], name = *classes_.class_of(split, i);
        const auto at = static_cast<std::size_t>(name.data() - path.data());
        if (path.find('/', at) == std::string_view::npos) continue;  // a wnid in a file's name
        if (path.substr(0, at) != parent || parents.empty()) parents.insert(parent = path.substr(0, at));
      }
    }
    std::map<std::string_view, bool> empty;  // by folder: whether nothing in it speaks against a class
    std::string_view folder;                 // in which nothing may be such a folder
    for (const std::string_view path : paths_.all()) {
      const std::string_view own_folder = path.substr(0, path.rfind('/') + 1);
      if (own_folder == folder && !folder.empty()) continue;
      folder = own_folder;
      for (std::size_t at = 0, slash = path.find('/'); slash != std::string_view::npos;
           slash = path.find('/', at)) {
        const std::string_view name = path.substr(at, slash - at);
        if (parents.contains(path.substr(0, at)) && !is_hidden_name(name) &&
            !std::ranges::binary_search(names, name)) {
          folder = {};
          bool& is_empty = empty.try_emplace(name, true).first->second;
          is_empty = is_empty && (path.ends_with('/') || is_other_image(path) || is_hidden_name(file_name(path)));
        }
        at = slash + 1;
      }
    }
    std::string said;
    for (const auto& [name, is_class] : empty) {
      if (is_class) {
        names.push_back(name);
        said += (said.empty() ? "" : ", ") + std::string(name);
      } else {
        listing.left_out.push_back({.what = "folder without images, " + std::string(name) + "/", .files = 1});
      }
    }
    std::ranges::sort(names);
    if (!said.empty()) listing.reading += "; classes without an image: " + said;
  }

  // What was taken for split and class, and why.
  std::string reading(Part wanted) const {
    std::string text = "all images are the train split";
    if (splits_.are_there()) {
      const auto folder = [&](Part part) { return name_of(part, layout_.classes_at.c_str()); };
      text = std::string(wanted == Part::kTrain ? "train" : "test") + " split: " + folder(wanted);
      for (const Part part : kParts) {
        if (part != wanted && !splits_.of(part).empty())
          text += " (" + std::string(to_string(part)) + ": " + folder(part) + ")";
      }
    }
    switch (rule_.kind()) {
      case ClassRule::Kind::kNone: return text + "; no classes, as asked for: every label is 0";
      case ClassRule::Kind::kRecognised:
        return text + (classes_.level() ? "; class: folder " +
                                              std::to_string(splits_.of(wanted).depth() + *classes_.level() + 1) +
                                              " from the top"
                                        : "; class: the wnid in each file's name");
      case ClassRule::Kind::kDepth:
      case ClassRule::Kind::kParent:
      case ClassRule::Kind::kPattern: break;
    }
    return text + "; class: the folder at '" + layout_.classes_at + "', as asked for";
  }

  [[noreturn]] void fail_with_one_class(std::string_view name) const {
    std::uint64_t images = 0;
    for (const Part part : kParts) images += splits_.of(part).images.size();
    const SplitImages& base = splits_.of(splits_.base());
    const std::size_t folders = base.depth() + depth_of(splits_.below(base).front()) - 1;
    throw ConfigError(
        source_ + ": " + (images == 1 ? "its image" : "all " + count_of(images, "image")) +
            " would be of one class, '" + std::string(name) + "'" + splits_.found(),
        "where one class is meant, say " +
            named("LayoutOptions::classes_at", folders > base.depth() ? std::to_string(folders) : "none") +
            "; else put the images of each class into a folder of their own");
  }

  void list_left_out(ImageListing& listing) const {
    std::vector<LeftOut> others = count_other_files(paths_);
    listing.left_out.insert(listing.left_out.begin(), others.begin(), others.end());
    const auto add = [&](const std::string& what, std::uint64_t files) {
      if (files > 0) listing.left_out.push_back({.what = what, .files = files});
    };
    const bool tested = is_known(Part::kTest) || !layout_.test_folder.empty();
    if (!is_known(Part::kTest)) add("in " + name_of(Part::kTest, "test/"), splits_.of(Part::kTest).images.size());
    if (tested || !is_known(Part::kValidation)) {
      add("in " + name_of(Part::kValidation, "val/"), splits_.of(Part::kValidation).images.size());
    }
    add("in " + name_of(Part::kUnused, "folders that others stand for"), splits_.of(Part::kUnused).images.size());
    add("in no split folder", splits_.in_none());
    add("not below " + layout_.classes_at, splits_.without_match());
    for (const auto& [folder, images] : splits_.hidden()) add("in hidden folders, " + folder + "/", images);
  }

  // Returns a split's folder; `otherwise` if a pattern names the splits, which may have several.
  std::string name_of(Part part, const char* otherwise) const {
    const std::string& folder = splits_.of(part).folder;
    return folder.empty() ? otherwise : folder;
  }

  const NameList& paths_;
  const std::string& source_;
  const LayoutOptions& layout_;
  const ClassRule rule_;
  const ImageSplits splits_;
  const ImageClasses classes_;
};

// Keeps the list itself where its paths are the records.
SampleTable table_of(const std::vector<ImageListing::Record>& records, NameList paths) {
  std::vector<std::int64_t> labels;
  labels.reserve(records.size());
  bool are_all = records.size() == paths.size();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    labels.push_back(records[i].label);
    are_all = are_all && records[i].path == i;
    bytes += paths[records[i].path].size();
  }
  if (are_all) return {std::move(paths), std::move(labels)};
  NameList names;
  names.reserve(records.size(), bytes);
  for (const ImageListing::Record& record : records) names.add(paths[record.path]);
  return {std::move(names), std::move(labels)};
}

}  // namespace

bool seems_of_other_split(std::string_view path, Split wanted) {
  const std::size_t folders = depth_of(path) - 1;
  for (std::size_t i = 0; i < folders; ++i) {
    if (const auto part = part_called(name_at(path, i)))
      return (*part == Part::kTrain) != (wanted == Split::kTrain);
  }
  return false;
}

ImageListing lay_out_images(const NameList& paths, Split split, const std::string& source,
                            const LayoutOptions& layout) {
  return Collection(paths, source, layout).lay_out(split);
}

ImageTable::ImageTable(const ImageListing& layout, NameList paths)
    : SampleTable(table_of(layout.records, std::move(paths))),
      classes_(layout.classes),
      left_out_(layout.left_out),
      reading_(layout.reading) {}

void ImageTable::add_to(Fingerprint& fingerprint) const {
  for (const std::string& name : classes_) fingerprint.add(name);
  const std::vector<std::uint32_t> labels(this->labels().begin(), this->labels().end());
  fingerprint.add(names().bytes()).add(std::as_bytes(std::span(labels))).add(std::as_bytes(names().ends()));
}

SourceInfo ImageTable::info(std::string name, const Fingerprint& fingerprint) const {
  SourceInfo info;
  info.name = std::move(name);
  info.records = size();
  info.fields = labelled_image_fields();
  info.classes = classes_;
  info.left_out = left_out_;
  info.reading = reading_;
  info.fingerprint = fingerprint.value();
  return info;
}

}  // namespace headrace
