// A hash of some of a source's bytes, which detects changes that its files' names, sizes and times do not show.
// Private to the engine.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/pipeline/source.h"

namespace headrace {

// The number of evenly spaced records that are read in full, including the first and the last; the first and the
// last of each file are added. A smaller source is read completely.
inline constexpr std::uint64_t kSampledRecords = 256;

// Returns whether other records may have this fingerprint and revision, because their maker gave no identity. A
// custom source has the fingerprint 0 if its author did not set it.
inline bool lacks_identity(const SourceInfo& info) noexcept { return info.anonymous || info.fingerprint == 0; }

// Hashes the sampled records' bytes and labels; std::nullopt if the source's fingerprint already covers the
// content. Reads the source, which may block: about 30 MB of photographs. An unreadable record contributes its
// error code. Cannot distinguish two sources that agree in names, sizes, times and all sampled records.
std::optional<std::uint64_t> sample_content(const Source& source);

}  // namespace headrace
