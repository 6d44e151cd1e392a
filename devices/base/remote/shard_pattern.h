// Names of shards that one URL stands for: "train-{000..099}.tar".
#pragma once

#include <string>
#include <vector>

namespace headrace::remote {

// Returns whether the URL's last part has a range in braces.
bool is_shard_pattern(const std::string& url);
// Returns whether a part before the last one has: a path below a pattern, where nothing is.
bool is_below_shard_pattern(const std::string& url);

// Returns the URLs in order: digits as wide as the first number's; the last range counts fastest. Throws
// DataError(kInvalidArgument) for a range that goes down, is not of numbers, or has too many.
std::vector<std::string> expand_shard_pattern(const std::string& url);

}  // namespace headrace::remote
