#include "headrace/pipeline/sources/records/web_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMaxClass = 64;
constexpr std::uint64_t kMaxJson = std::uint64_t{1} << 20;
constexpr int kLookedAt = 16;  // files

enum class Role { kImage, kClass, kJson, kOther };

// "a/b.seg.png" is the member "seg.png" of the sample "a/b".
struct MemberName {
  std::string key;
  Role role = Role::kOther;
};

MemberName split_member_name(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.find('.', name);
  if (dot == std::string::npos || dot == name) return {.key = path};
  std::string extension = path.substr(dot + 1);
  std::ranges::transform(extension, extension.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  MemberName result{.key = path.substr(0, dot)};
  if (extension == "jpg" || extension == "jpeg" || extension == "png") result.role = Role::kImage;
  if (extension == "cls") result.role = Role::kClass;
  if (extension == "json") result.role = Role::kJson;
  return result;
}

// Parses a class; blanks and a line end may surround the number.
std::optional<std::int64_t> parse_class(std::string_view text) {
  const std::string_view blanks(" \t\r\n\0", 5);
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  std::int64_t label = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return label;
}

std::optional<std::int64_t> parse_json_label(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("label");
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{1} << 62) return std::nullopt;
  return found->get<std::int64_t>();
}

// Assembles the samples while the members pass by.
class Collector {
 public:
  Collector(ArchiveFiles& files, const KeepImage& keep) : files_(files), keep_(keep) {}

  void add(const ArchiveFile& member) {
    const MemberName name = split_member_name(member.path);
    if (name.role == Role::kOther) return;
    const auto [found, is_new] = index_.try_emplace(name.key, samples_.size());
    if (is_new) samples_.push_back({.offset = member.place.offset});
    Pending& sample = samples_[found->second];
    switch (name.role) {
      case Role::kImage:
        if (!sample.image.image.empty()) {
          return blame(sample, member, "is a second image beside '" + sample.image.image + "'");
        }
        sample.image.image = member.path;
        sample.image.place = member.place;
        sample.image.bytes = keep_(files_, member);
        return;
      case Role::kClass: return take_class(sample, member);
      case Role::kJson: return take_json(sample, member);
      case Role::kOther: return;
    }
  }

  std::vector<WebSample> finish() {
    std::vector<WebSample> result;
    for (const auto& [key, index] : index_) samples_[index].key = key;
    for (Pending& sample : samples_) {
      if (sample.image.image.empty() && !sample.has_class) continue;  // a .json beside no image: not a sample
      find_fault(sample);
      if (sample.from_class || sample.from_json) {
        sample.image.label = sample.from_class ? *sample.from_class : *sample.from_json;
      }
      result.push_back(std::move(sample.image));
    }
    return result;
  }

 private:
  struct Pending {
    std::uint64_t offset = 0;  // of its first member
    std::string key = {};
    WebSample image = {};
    std::optional<std::int64_t> from_class = {}, from_json = {};
    bool has_class = false, has_json = false;
  };

  // Sets a sample's fault; the first one counts.
  static void blame(Pending& sample, const ArchiveFile& member, const std::string& what) {
    if (sample.image.fault.empty()) sample.image.fault = "'" + member.path + "' " + what;
  }

  // Returns a member's text; std::nullopt, with the sample blamed, if it is too long for a label.
  std::optional<std::string> text_of(Pending& sample, const ArchiveFile& member, std::uint64_t longest) {
    if (member.place.size > longest) {
      blame(sample, member, fmt::format("has {} bytes: no label", member.place.size));
      return std::nullopt;
    }
    std::string text(static_cast<std::size_t>(member.place.size), '\0');
    files_.read(std::as_writable_bytes(std::span(text)));
    return text;
  }

  void take_class(Pending& sample, const ArchiveFile& member) {
    if (sample.has_class) return blame(sample, member, "is a second label of its sample");
    sample.has_class = true;
    const std::optional<std::string> text = text_of(sample, member, kMaxClass);
    if (text) sample.from_class = parse_class(*text);
    if (!sample.from_class) blame(sample, member, "is no decimal number");
  }

  void take_json(Pending& sample, const ArchiveFile& member) {
    if (sample.has_json) return blame(sample, member, "is a second label of its sample");
    sample.has_json = true;
    const std::optional<std::string> text = text_of(sample, member, kMaxJson);
    if (text) sample.from_json = parse_json_label(*text);
  }

  static void find_fault(Pending& sample) {
    WebSample& image = sample.image;
    if (image.image.empty()) {
      image.image = sample.key;
      image.place.offset = sample.offset;
      if (image.fault.empty()) image.fault = "sample '" + sample.key + "' has a label and no image";
    }
    if (!image.fault.empty() || sample.from_class || sample.from_json) return;
    image.fault = sample.has_json ? "'" + sample.key + ".json' has no integer \"label\""
                                  : "'" + image.image + "' has no label: no " + sample.key + ".cls";
  }

  ArchiveFiles& files_;
  const KeepImage& keep_;
  std::vector<Pending> samples_;
  std::unordered_map<std::string, std::size_t> index_;  // into samples_, by key
};

}  // namespace

std::vector<WebSample> read_web_samples(const std::string& archive, ArchiveFiles& files, const KeepImage& keep) {
  Collector collector(files, keep);
  while (const std::optional<ArchiveFile> member = files.next()) collector.add(*member);
  std::vector<WebSample> samples = collector.finish();
  if (!samples.empty()) return samples;
  throw DataError(ErrorCode::kDataCorrupt, "no sample in it: no key.jpg beside key.cls", {.source = archive});
}

std::optional<WebSample> read_next_sample(ArchiveFiles& files, const KeepImage& keep,
                                          std::optional<ArchiveFile>& member) {
  while (member) {
    Collector collector(files, keep);
    for (std::string key; member; member = files.next()) {
      const MemberName next = split_member_name(member->path);
      if (next.role == Role::kOther) continue;
      if (!key.empty() && next.key != key) break;
      key = next.key;
      collector.add(*member);
    }
    std::vector<WebSample> samples = collector.finish();
    if (!samples.empty()) return std::move(samples.front());
  }
  return std::nullopt;
}

bool is_web_dataset(const std::filesystem::path& archive) {
  const std::unique_ptr<ArchiveFiles> files = open_archive(archive);
  std::set<std::string> images, labels;
  for (int i = 0; i < kLookedAt; ++i) {
    const std::optional<ArchiveFile> member = files->next();
    if (!member) break;
    const MemberName name = split_member_name(member->path);
    if (name.role == Role::kImage) images.insert(name.key);
    if (name.role == Role::kClass || name.role == Role::kJson) labels.insert(name.key);
  }
  return std::ranges::any_of(images, [&](const std::string& key) { return labels.contains(key); });
}

}  // namespace headrace
