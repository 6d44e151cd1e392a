#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/archives/open_archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/cell_numbers.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMaxClass = 64;
constexpr std::uint64_t kMaxJson = std::uint64_t{1} << 20;
constexpr int kLookedAt = 16;  // files
constexpr std::size_t kMaxSeen = 64;

// What the members of a sample are.
class Roles {
 public:
  explicit Roles(const WebMembers& members) : members_(members) {}

  bool is_image(const std::string& extension) const {
    if (!members_.image.empty()) return extension == members_.image;
    return (extension == "jpg" || extension == "jpeg" || extension == "png") && !further(extension);
  }
  bool is_class(const std::string& extension) const {
    return !members_.label.empty() && extension == members_.label;
  }
  bool is_json(const std::string& extension) const {
    return members_.json && extension == members_.json->extension;
  }
  std::optional<std::size_t> further(const std::string& extension) const {
    const auto found = std::ranges::find(members_.further, extension);
    if (found == members_.further.end()) return std::nullopt;
    return static_cast<std::size_t>(found - members_.further.begin());
  }
  bool is_used(const std::string& extension) const {
    return is_image(extension) || is_class(extension) || is_json(extension) || further(extension);
  }

 private:
  const WebMembers& members_;
};

std::string_view without_blanks(std::string_view text) {
  const std::string_view blanks(" \t\r\n\0", 5);
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// Sets the label from a member of text; blanks and a line end may surround it. Returns whether it is one.
bool label_from_text(std::string_view text, LabelType type, WebSample& sample) {
  text = without_blanks(text);
  switch (type) {
    case LabelType::kAuto: {
      const std::optional<PlainNumber> number = parse_plain_number(text);
      if (number && number->integer) sample.label = *number->integer;
      return number && number->integer;
    }
    case LabelType::kNumber: {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sample.number);
      return !text.empty() && error == std::errc() && end == text.data() + text.size();
    }
    case LabelType::kClass: sample.class_name = text; return !text.empty();
  }
  return false;
}

bool label_from_json(std::string_view text, const std::vector<std::string>& keys, LabelType type,
                     WebSample& sample) {
  const nlohmann::json json = parse_json_cell(text);
  const nlohmann::json* at = &json;
  for (const std::string& key : keys) {
    if (!at->is_object()) return false;
    const auto found = at->find(key);
    if (found == at->end()) return false;
    at = &*found;
  }
  const bool too_large = at->is_number_unsigned() && at->get<std::uint64_t>() > std::uint64_t{1} << 62;
  const bool integer = at->is_number_integer() && !too_large;
  switch (type) {
    case LabelType::kAuto:
      if (at->is_number_float()) return label_from_text(at->dump(), type, sample);  // 3.0 is 3
      if (integer) sample.label = at->get<std::int64_t>();
      return integer;
    case LabelType::kNumber:
      if (at->is_number()) sample.number = at->get<float>();
      return at->is_number();
    case LabelType::kClass:
      if (integer) sample.class_name = std::to_string(at->get<std::int64_t>());
      if (at->is_string()) sample.class_name = at->get<std::string>();
      return !sample.class_name.empty();
  }
  return false;
}

const char* name_of(LabelType type) {
  return type == LabelType::kAuto ? "integer" : type == LabelType::kNumber ? "number" : "class";
}

// Assembles the samples while the members pass by.
class Collector {
 public:
  Collector(ArchiveFiles& files, const KeepMember& keep, const WebMembers& members)
      : files_(files), keep_(keep), members_(members), roles_(members) {}

  void add(const ArchiveFile& member) {
    is_empty_ = false;
    const SampleFile file = split_member_name(member.path);
    see(file.extension);
    const bool image = roles_.is_image(file.extension);
    const bool label = roles_.is_class(file.extension), json = roles_.is_json(file.extension);
    const std::optional<std::size_t> further = roles_.further(file.extension);
    if (!image && !label && !json && !further) return;
    const auto [found, is_new] = index_.try_emplace(file.key, samples_.size());
    if (is_new) samples_.push_back({.offset = member.place.offset});
    Pending& pending = samples_[found->second];
    if (image && !pending.sample.image.empty()) {
      return blame(pending, member, "is a second image beside '" + pending.sample.image + "'");
    }
    // Its bytes pass by once: they are kept, or read for the label.
    std::span<const std::byte> bytes;
    if (image || further) bytes = keep_(files_, member);
    if (image) {
      pending.sample.image = member.path;
      pending.sample.place = member.place;
      pending.sample.bytes = bytes;
    }
    if (further) take_further(pending, member, *further, bytes);
    if (label) take_class(pending, member, bytes);
    if (json) take_json(pending, member, bytes);
  }

  std::vector<WebSample> finish() {
    std::vector<WebSample> result;
    for (const auto& [key, index] : index_) samples_[index].key = key;
    for (Pending& pending : samples_) {
      // A .json or another member beside no image: not a sample.
      if (pending.sample.image.empty() && !pending.has_class) continue;
      find_fault(pending);
      pending.sample.further.resize(members_.further.size());
      result.push_back(std::move(pending.sample));
    }
    return result;
  }

  std::vector<std::string> take_seen() { return std::move(seen_); }
  bool is_empty() const noexcept { return is_empty_; }

 private:
  struct Pending {
    std::uint64_t offset = 0;  // of its first member
    std::string key = {};
    WebSample sample = {};
    bool has_class = false, has_json = false, class_counts = false, json_counts = false;
  };

  void see(const std::string& extension) {
    if (extension.empty() || seen_.size() >= kMaxSeen) return;
    if (!seen_.empty() && last_seen_ < seen_.size() && seen_[last_seen_] == extension) return;
    const auto found = std::ranges::find(seen_, extension);
    last_seen_ = static_cast<std::size_t>(found - seen_.begin());
    if (found == seen_.end()) seen_.push_back(extension);
  }

  // Sets a sample's fault; the first one counts.
  static void blame(Pending& pending, const ArchiveFile& member, const std::string& what) {
    if (pending.sample.fault.empty()) pending.sample.fault = "'" + member.path + "' " + what;
  }

  // Returns a member's text; std::nullopt, with the sample blamed, if it is too long for a label. `kept`: its
  // bytes if they were kept.
  std::optional<std::string> text_of(Pending& pending, const ArchiveFile& member, std::span<const std::byte> kept,
                                     std::uint64_t longest) {
    if (member.place.size > longest) {
      blame(pending, member, fmt::format("has {} bytes: no label", member.place.size));
      return std::nullopt;
    }
    std::string text(static_cast<std::size_t>(member.place.size), '\0');
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(text));
    if (!kept.empty()) {
      std::ranges::copy(kept, bytes.begin());
    } else if (!bytes.empty()) {
      files_.read(bytes);
    }
    return text;
  }

  void take_further(Pending& pending, const ArchiveFile& member, std::size_t number,
                    std::span<const std::byte> bytes) {
    std::vector<WebMember>& further = pending.sample.further;
    further.resize(members_.further.size());
    if (!further[number].is_missing()) return blame(pending, member, "is in its sample twice");
    further[number] = {.place = member.place, .bytes = bytes};
  }

  void take_class(Pending& pending, const ArchiveFile& member, std::span<const std::byte> kept) {
    if (pending.has_class) return blame(pending, member, "is a second label of its sample");
    pending.has_class = true;
    const std::optional<std::string> text = text_of(pending, member, kept, kMaxClass);
    WebSample label;
    if (text) pending.class_counts = label_from_text(*text, members_.label_type, label);
    if (!pending.class_counts) {
      return blame(pending, member,
                   members_.label_type == LabelType::kClass ? "names no class" : "is no decimal number");
    }
    take_label(pending, std::move(label));
  }

  void take_json(Pending& pending, const ArchiveFile& member, std::span<const std::byte> kept) {
    if (pending.has_json) return blame(pending, member, "is a second label of its sample");
    pending.has_json = true;
    const std::optional<std::string> text = text_of(pending, member, kept, kMaxJson);
    WebSample label;
    if (text) pending.json_counts = label_from_json(*text, members_.json->keys, members_.label_type, label);
    if (pending.json_counts && !pending.class_counts) take_label(pending, std::move(label));
  }

  static void take_label(Pending& pending, WebSample label) {
    pending.sample.label = label.label;
    pending.sample.number = label.number;
    pending.sample.class_name = std::move(label.class_name);
  }

  void find_fault(Pending& pending) const {
    WebSample& sample = pending.sample;
    if (sample.image.empty()) {
      sample.image = pending.key;
      sample.place.offset = pending.offset;
      if (sample.fault.empty()) sample.fault = "sample '" + pending.key + "' has a label and no image";
    }
    if (pending.class_counts || pending.json_counts) return;
    const std::string wanted = members_.label.empty() ? members_.json->extension : members_.label;
    sample.label_fault = "'" + sample.image + "' has no label: no " + pending.key + "." + wanted;
    if (!pending.has_json) return;
    sample.label_fault = fmt::format("'{}.{}' has no {} \"{}\"", pending.key, members_.json->extension,
                                     name_of(members_.label_type), fmt::join(members_.json->keys, "."));
  }

  ArchiveFiles& files_;
  const KeepMember& keep_;
  const WebMembers& members_;
  Roles roles_;
  std::vector<Pending> samples_;
  std::unordered_map<std::string, std::size_t> index_;  // into samples_, by key
  std::vector<std::string> seen_;
  std::size_t last_seen_ = 0;
  bool is_empty_ = true;  // no member yet
};

}  // namespace

WebMembers web_members(const ColumnOptions& columns, std::vector<std::string> further, const std::string& source) {
  for (const std::string& extension : further) {
    if (!is_path_pattern(extension)) continue;
    throw ConfigError(fmt::format("{}: '{}' is a path, and WebDataset's samples have members", source, extension),
                      "name members by their extension, as mask=seg.png:mask");
  }
  WebMembers members{.label_type = columns.label_type, .further = std::move(further)};
  if (!columns.image_column.empty()) members.image = parse_member_name(columns.image_column).extension;
  if (columns.label_column.empty()) return members;
  members.named = true;
  MemberName label = parse_member_name(columns.label_column);
  const bool json = label.extension == "json" || label.extension.ends_with(".json");
  if (json && label.keys.empty()) {
    throw ConfigError(fmt::format("{}: the label '{}' is all of a JSON member", source, columns.label_column),
                      "name a key in it: json.KEY");
  }
  members.label = json ? "" : label.extension;
  members.json.reset();
  if (json) members.json = std::move(label);
  return members;
}

std::vector<WebSample> read_web_samples(const std::string& archive, ArchiveFiles& files, const KeepMember& keep,
                                        const WebMembers& members, std::vector<std::string>& seen) {
  Collector collector(files, keep, members);
  while (const std::optional<ArchiveFile> member = files.next()) collector.add(*member);
  std::vector<WebSample> samples = collector.finish();
  seen = collector.take_seen();
  if (!samples.empty() || collector.is_empty()) return samples;
  throw DataError(ErrorCode::kDataCorrupt,
                  members.image.empty() ? "no sample in it: no key.jpg beside key.cls"
                                        : fmt::format("no sample in it: no image key.{}", members.image),
                  {.source = archive});
}

std::optional<WebSample> read_next_sample(ArchiveFiles& files, const KeepMember& keep, const WebMembers& members,
                                          std::optional<ArchiveFile>& member) {
  const Roles roles(members);
  while (member) {
    Collector collector(files, keep, members);
    for (std::string key; member; member = files.next()) {
      const SampleFile next = split_member_name(member->path);
      if (!roles.is_used(next.extension)) continue;
      if (!key.empty() && next.key != key) break;
      key = next.key;
      collector.add(*member);
    }
    std::vector<WebSample> samples = collector.finish();
    if (!samples.empty()) return std::move(samples.front());
  }
  return std::nullopt;
}

bool is_web_dataset(const std::filesystem::path& archive, const WebMembers& members) {
  const Roles roles(members);
  const std::unique_ptr<ArchiveFiles> files = open_archive(archive);
  std::set<std::string> images, others;
  // What is taken along is no evidence to image folders: all members are looked at.
  for (int i = 0; i < kLookedAt || !members.further.empty(); ++i) {
    const std::optional<ArchiveFile> member = files->next();
    if (!member) break;
    const SampleFile file = split_member_name(member->path);
    if (roles.is_image(file.extension)) images.insert(file.key);
    const bool other =
        roles.is_class(file.extension) || roles.is_json(file.extension) || roles.further(file.extension);
    if (other) others.insert(file.key);
  }
  return std::ranges::any_of(images, [&](const std::string& key) { return others.contains(key); });
}

}  // namespace headrace
