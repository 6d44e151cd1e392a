// A hash of some of a source's bytes: what the names, sizes and times of its files do not tell. Private to the
// engine.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/pipeline/source.h"

namespace headrace {

// Records that are read whole, evenly spaced, the first and the last of all among them; besides, the first and the
// last of each file. All of a smaller source.
inline constexpr std::uint64_t kSampledRecords = 256;

// Whether other records may have this fingerprint and revision: their maker gave no identity. A source that a
// program wrote leaves the fingerprint 0 where its writer did not think of it.
inline bool lacks_identity(const SourceInfo& info) noexcept { return info.anonymous || info.fingerprint == 0; }

// Hashes the sampled records' bytes and labels; none where the content is in the source's fingerprint anyway. It
// reads the source, which may block: of photographs about 30 MB. An unreadable record contributes its error code.
// Two sources that agree in names, sizes, times and all sampled records cannot be told apart by it.
std::optional<std::uint64_t> sample_content(const Source& source);

}  // namespace headrace
