// The size that decode() uses if the plan needs one and gives none. Private to the engine.
#pragma once

#include <optional>

#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// The maximum of records tried to find one with images whose size can be read.
inline constexpr std::uint64_t kFirstImagesTried = 256;

// Returns the stage with the size of the source's first image, in the order of its records: independent of
// shuffles, filters, shards and workers. Skips bad records; throws any other error of reading a record. Returns
// std::nullopt if the source is a stream, whose first image cannot be read beforehand, if a record holds images of
// several sizes, or if all of the first records are bad. Reads the source, which may block.
std::optional<DecodeStage> sized_by_first_image(const DecodeStage& stage, const Source& source);

}  // namespace headrace
