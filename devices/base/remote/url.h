// URLs of data, checked; how the objects of stores are reached, and the shards that one URL stands for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::remote {

// URLs of data, checked, and the requests' URLs made of them.

enum class Scheme { kHttp, kHttps, kS3, kGs, kAz, kHf };

struct Url {
  Scheme scheme = Scheme::kHttp;
  std::string host;  // of a store: the bucket; of hf: "datasets"
  std::string path;  // of a store: the key; otherwise with its leading '/' and what follows, as written

  bool in_store() const noexcept { return scheme != Scheme::kHttp && scheme != Scheme::kHttps; }
};

// Throws DataError(kInvalidArgument) without showing secrets: for a URL that names a user, a password or a
// signature, has no host, or holds blanks or control characters.
Url parse_url(const std::string& text);

// The parts of a path in hf://datasets/.
struct HubPath {
  std::string repository;  // "OWNER/NAME"
  std::string revision;    // "main" if none is named
  std::string file;        // empty: the repository's root
};
// Returns std::nullopt if it names no repository.
std::optional<HubPath> hub_path(std::string_view path);

// Returns "s3", "https".
std::string name_of(Scheme scheme);

std::string in_lower_case(std::string_view text);

// Returns the text with every byte but unreserved characters, and '/' if `keeps_slashes`, as %XX: RFC 3986.
std::string percent_encoded(std::string_view text, bool keeps_slashes);
// Returns the text with %XX replaced by bytes.
std::string percent_decoded(std::string_view text);

// Names of shards that one URL stands for: "train-{000..099}.tar".

// Returns whether the URL's last part has a range in braces.
bool is_shard_pattern(const std::string& url);
// Returns whether a part before the last one has: a path below a pattern, where nothing is.
bool is_below_shard_pattern(const std::string& url);

// Returns the URLs in order: digits as wide as the first number's; the last range counts fastest. Throws
// DataError(kInvalidArgument) for a range that goes down, is not of numbers, or has too many.
std::vector<std::string> expand_shard_pattern(const std::string& url);

}  // namespace headrace::remote
