#include "headrace/pipeline/sources/images/sidecars.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/split_names.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxExtensions = 64;
constexpr std::string_view kStem = "{stem}", kFolder = "{folder}";

bool has_extension(std::string_view path, std::string_view extension) {
  const std::string_view name = file_name(path);
  return name.size() > extension.size() + 1 && name.ends_with(extension) &&
         name[name.size() - extension.size() - 1] == '.';
}

// A name or a whole path takes the place of each placeholder; {folder}/ of an image at the root is empty.
bool matches(std::string_view pattern, std::string_view path) {
  const std::size_t open = std::min(pattern.find('{'), pattern.size());
  if (!path.starts_with(pattern.substr(0, open))) return false;
  path.remove_prefix(open);
  if (open == pattern.size()) return path.empty();
  const bool folder = pattern.substr(open).starts_with(kFolder);
  const std::string_view rest = pattern.substr(pattern.find('}', open) + 1);
  if (folder && rest.starts_with('/') && matches(rest.substr(1), path)) return true;
  for (std::size_t taken = 1; taken <= path.size(); ++taken) {
    if (!folder && path[taken - 1] == '/') return false;
    if (matches(rest, path.substr(taken))) return true;
  }
  return false;
}

// A cheap test that excludes most files: true for every extension .cls or .json, in any case.
bool may_be_label(std::string_view path) {
  const char last = path.empty() ? '\0' : path.back();
  return last == 's' || last == 'S' || last == 'n' || last == 'N';
}

}  // namespace

bool Sidecars::is_one(std::string_view path, const std::vector<std::string>& extensions) {
  return std::ranges::any_of(extensions, [&](const std::string& extension) {
    return is_path_pattern(extension) ? matches(extension, path) : has_extension(path, extension);
  });
}

Sidecars::Sidecars(NameList& paths, const std::vector<std::string>& extensions) {
  if (extensions.empty()) return;
  NameList others;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string_view path = paths[i], name = file_name(path);
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos && seen.size() < kMaxExtensions) {
      seen.emplace(name.substr(dot + 1));
    }
    if (is_one(path, extensions)) {
      files_.insert_or_assign(std::string(path), i);
      continue;
    }
    others.add(path);
    left_.push_back(i);
  }
  paths = std::move(others);
  seen_.assign(seen.begin(), seen.end());
  for (const std::string& extension : extensions) {
    if (is_path_pattern(extension)) count_unpaired(paths, extension);
  }
}

void Sidecars::count_unpaired(const NameList& images, const std::string& pattern) {
  std::set<std::size_t> paired;
  for (const std::string_view path : images.all()) {
    if (const std::size_t at = find(path_beside(path, pattern)); at != kMissing) paired.insert(at);
  }
  const auto count = std::ranges::count_if(files_, [&](const auto& file) { return matches(pattern, file.first); });
  const std::uint64_t files = static_cast<std::uint64_t>(count) - paired.size();
  if (files > 0) unpaired_.push_back({.what = pattern + " of no image", .files = files});
}

std::string Sidecars::path_beside(std::string_view image, std::string_view extension) {
  std::string path(image.substr(0, image.rfind('.') + 1));
  if (!is_path_pattern(extension)) return path += extension;
  const std::size_t name = path.rfind('/') + 1;
  const std::string_view stem = std::string_view(path).substr(name, path.size() - name - 1);
  const std::string_view folder = std::string_view(path).substr(0, name > 0 ? name - 1 : 0);
  std::string filled;
  for (std::size_t at = 0; at < extension.size();) {
    const std::string_view rest = extension.substr(at);
    if (rest.starts_with(kStem)) {
      filled += stem;
      at += kStem.size();
    } else if (rest.starts_with(kFolder)) {
      filled += folder;
      at += kFolder.size() + (folder.empty() && rest.substr(kFolder.size()).starts_with('/') ? 1 : 0);
    } else {
      filled += extension[at++];
    }
  }
  return filled;
}

std::string outer_folder(std::string_view pattern) {
  if (!is_path_pattern(pattern) || !(pattern.starts_with("../") || pattern.starts_with('/'))) return {};
  const std::string_view head = pattern.substr(0, pattern.find('{'));
  return std::string(head.substr(0, head.rfind('/') + 1));
}

std::size_t Sidecars::find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? kMissing : found->second;
}

void refuse_samples(const NameList& paths, const std::vector<std::string>& further, const LayoutOptions& layout,
                    const std::string& source, bool recognised) {
  if (!layout.classes_at.empty()) return;
  std::unordered_set<std::string> labelled;  // keys of samples
  std::string label;
  for (const std::string_view path : paths.all()) {
    if (!may_be_label(path)) continue;
    SampleFile file = split_member_name(std::string(path));
    const bool is_chosen = std::ranges::count(further, file.extension) > 0;
    const bool is_class = file.extension == "cls" && !is_chosen, is_other = file.extension == "json" && !is_chosen;
    if (is_class && label.empty()) label = path;
    if (is_class || (recognised && is_other)) labelled.insert(std::move(file.key));
  }
  if (labelled.empty()) return;
  std::uint64_t images = 0, pairs = 0;
  for (const std::string_view path : paths.all()) {
    if (!is_image_path(path) || !hidden_folder_of(path).empty()) continue;
    ++images;
    pairs += labelled.contains(split_member_name(std::string(path)).key) ? 1 : 0;
  }
  const bool all = recognised && pairs == images && images > 0;
  if (pairs == 0 || (label.empty() && !all)) return;
  throw SamplesNotImages(
      fmt::format("{}: {} of {} have a label of WebDataset beside them, as '{}', and lie in folders, too", source,
                  with_commas(pairs), count_of(images, "image"), label),
      recognised
          ? joined({"where the folders are the classes, say " + named("LayoutOptions::classes_at", "parent"),
                    advice("where the labels are, say {}", named("ColumnOptions::label_column", "cls"))},
                   "; ")
          : "where the folders are the classes, say " + named("LayoutOptions::classes_at", "parent") +
                "; where the labels are, pack the folder into a .tar",
      all);
}

void refuse_named_columns(const std::filesystem::path& path, const ColumnOptions& columns) {
  if (columns.image_column.empty() && columns.label_column.empty() && columns.label_type == LabelType::kAuto)
    return;
  throw ConfigError(
      path.string() + ": holds images in folders, whose images are files and whose labels are folders",
      joined({"leave out " + named("ColumnOptions::image_column"), named("ColumnOptions::label_column"),
              named("ColumnOptions::label_type")},
             ", "));
}

void settle_sidecars(MemberFields& fields, const Sidecars& sidecars, Fingerprint& fingerprint, SourceInfo& info) {
  fields.settle(sidecars.extensions_seen());
  fields.add_to(info.fields);
  for (const Field& field : info.fields) fingerprint.add(field);
  fields.add_classes_to(fingerprint);
  info.fingerprint = fingerprint.value();
  info.left_out.insert(info.left_out.end(), sidecars.unpaired().begin(), sidecars.unpaired().end());
  for (const std::string& extension : fields.extensions()) {
    info.columns.push_back({.name = extension, .holds = "files", .field = fields.field_of(extension)});
  }
}

}  // namespace headrace
