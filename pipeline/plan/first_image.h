// The size that decode() takes where the plan needs one and says none. Private to the engine.
#pragma once

#include <optional>

#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// Records that are tried until one has images whose size can be read.
inline constexpr std::uint64_t kFirstImagesTried = 256;

// Returns the stage with the size of the source's first image, in the order of its records: shuffles, filters,
// shards and workers change nothing of it. Bad records are passed over; whatever else keeps a record from being
// read is thrown. Nothing where the source is a stream, where the first image cannot be looked at beforehand,
// where a record holds images of several sizes, and where none of the first records is any good. Reads the source,
// which may block.
std::optional<DecodeStage> sized_by_first_image(const DecodeStage& stage, const Source& source);

}  // namespace headrace
