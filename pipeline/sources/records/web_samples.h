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
  std::string image;  // the member's path; the key if there is no image
  std::int64_t label = 0;
  StoredFile place;                  // of the image, or of the sample's first member
  std::span<const std::byte> bytes;  // kept by the caller
  std::string fault = {};            // why it is unusable; empty: usable
};

// Keeps an image's bytes, called when its member is reached; it may read them or leave them.
using KeepImage = std::function<std::span<const std::byte>(ArchiveFiles& files, const ArchiveFile& file)>;

// Returns the next sample of members ordered by sample, as WebDataset's own writers produce them; std::nullopt at
// the end. `member` is the next one, at first from files.next(), and is advanced.
std::optional<WebSample> read_next_sample(ArchiveFiles& files, const KeepImage& keep,
                                          std::optional<ArchiveFile>& member);

// Returns the samples in the order of their first members. Skips members of other kinds. A sample with a missing,
// duplicate or invalid half is included with its fault. Throws DataError if there is no sample at all.
std::vector<WebSample> read_web_samples(const std::string& archive, ArchiveFiles& files, const KeepImage& keep);

// Returns whether the archive's first files are named like that: an image with a .cls or .json of the same key.
bool is_web_dataset(const std::filesystem::path& archive);

}  // namespace headrace
