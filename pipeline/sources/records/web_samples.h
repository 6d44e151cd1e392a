// The samples of one archive in WebDataset's naming: members key.jpg and key.cls (or key.json) are one sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/sources/archives/archive_files.h"

namespace headrace {

struct WebSample {
  std::string image;  // the member's path; the key where there is no image
  std::int64_t label = 0;
  StoredFile place;                  // of the image, or of the sample's first member
  std::span<const std::byte> bytes;  // where the caller keeps them
  std::string fault = {};            // why it cannot be used; empty where it can
};

// What keeps an image's bytes, called when its member is reached; it may read them or leave them.
using KeepImage = std::function<std::span<const std::byte>(ArchiveFiles& files, const ArchiveFile& file)>;

// The next sample of members that come sample by sample, as WebDataset's own writers leave them; nothing at the
// end. `member` is the next one, from files.next() at first, and is moved on.
std::optional<WebSample> read_next_sample(ArchiveFiles& files, const KeepImage& keep,
                                          std::optional<ArchiveFile>& member);

// In the order in which the first member of each appears. Members of other kinds are passed over. A sample with
// a half that is missing, comes twice or makes no sense is there with its fault. DataError where there is no
// sample at all.
std::vector<WebSample> read_web_samples(const std::string& archive, ArchiveFiles& files, const KeepImage& keep);

// Whether the archive's first files are named like that: an image with a .cls or .json of the same key.
bool is_web_dataset(const std::filesystem::path& archive);

}  // namespace headrace
