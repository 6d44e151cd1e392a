// The samples of one archive in WebDataset's naming: members key.jpg and key.cls (or key.json) are one sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/members/member_name.h"
#include "headrace/pipeline/sources/records/shard_files.h"

namespace headrace {

// Which members of a sample are what.
struct WebMembers {
  std::string image = {};     // the image's extension; empty: jpg, jpeg or png
  std::string label = "cls";  // the extension of a decimal number; empty: none
  std::optional<MemberName> json = MemberName{.extension = "json", .keys = {"label"}};  // or the label in JSON
  bool named = false;  // the label was named: it alone counts
  LabelType label_type = LabelType::kAuto;
  std::vector<std::string> further = {};  // extensions
};
// Returns the members that columns name. Throws ConfigError beginning with `source` if JSON is named without a
// key.
WebMembers web_members(const ColumnOptions& columns, std::vector<std::string> further, const std::string& source);

// A member of a sample that is taken along.
struct WebMember {
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};

  StoredFile place = {.offset = kMissing};
  std::span<const std::byte> bytes = {};  // as WebSample::bytes

  bool is_missing() const noexcept { return place.offset == kMissing; }
};

struct WebSample {
  std::string image;  // the member's path; the key if there is no image
  std::int64_t label = 0;
  float number = 0;                     // of LabelType::kNumber, instead
  std::string class_name = {};          // of LabelType::kClass, instead
  StoredFile place;                     // of the image, or of the sample's first member
  std::span<const std::byte> bytes;     // kept by the caller
  std::vector<WebMember> further = {};  // beside WebMembers::further
  std::string fault = {};               // why it is unusable; empty: usable but for a label that it lacks
  std::string label_fault = {};         // why it has no label; empty: it has one

  // Returns why the sample cannot be used if it needs a label.
  const std::string& fault_with_label() const noexcept { return fault.empty() ? label_fault : fault; }
};

// Keeps a member's bytes, called when it is reached; it may read them or leave them.
using KeepMember = std::function<std::span<const std::byte>(ArchiveFiles& files, const ArchiveFile& file)>;

// Returns the next sample of members ordered by sample, as WebDataset's own writers produce them; std::nullopt at
// the end. `member` is the next one, at first from files.next(), and is advanced.
std::optional<WebSample> read_next_sample(ArchiveFiles& files, const KeepMember& keep, const WebMembers& members,
                                          std::optional<ArchiveFile>& member);

// Returns the samples in the order of their first members. Skips members of other kinds. A sample with a missing,
// duplicate or invalid half is included with its fault. `seen` receives the extensions of the members, up to a few
// dozen. Throws DataError if there are members and no sample.
std::vector<WebSample> read_web_samples(const std::string& archive, ArchiveFiles& files, const KeepMember& keep,
                                        const WebMembers& members, std::vector<std::string>& seen);

// Opens the archives as a stream of shards: WebDatasetOptions::indexed is false.
SourcePtr web_shards(std::string name, FoundShards shards, const WebDatasetOptions& options);

// Returns whether the archive's first files are named like that: an image with a label of the same key, or with
// one of the further members.
bool is_web_dataset(const std::filesystem::path& archive, const WebMembers& members);

// Returns whether it is a shard, by its name: x.tar, x.tar.gz, x.tar-00000-of-00004; by content for
// x-00000-of-00004. A .zip may be something else: it counts as a shard only if requested as one.
bool is_web_shard(const std::filesystem::path& path);

}  // namespace headrace
