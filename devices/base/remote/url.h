// URLs of data, checked; how the objects of stores are reached, and the shards that one URL stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::remote {

// URLs of data, checked, and the requests' URLs made of them.

enum class Scheme { kHttp, kHttps, kS3 };

struct Url {
  Scheme scheme = Scheme::kHttp;
  std::string host;  // of S3: the bucket
  std::string path;  // of S3: the key; otherwise with its leading '/' and what follows, as written

  bool is_s3() const noexcept { return scheme == Scheme::kS3; }
};

// Throws DataError(kInvalidArgument) without showing secrets: for a URL that names a user, a password or a
// signature, has no host, or holds blanks or control characters.
Url parse_url(const std::string& text);

std::string in_lower_case(std::string_view text);

// Returns the text with every byte but unreserved characters, and '/' if `keeps_slashes`, as %XX: RFC 3986.
std::string percent_encoded(std::string_view text, bool keeps_slashes);
// Returns the text with %XX replaced by bytes.
std::string percent_decoded(std::string_view text);

// Access to S3-compatible stores, read from the environment alone and never shown.

struct S3Access {
  std::string endpoint;  // "http://127.0.0.1:9000"; empty: Amazon's of the region
  std::string region;
  std::string key_id, secret, session_token;  // empty: requests are not signed

  bool is_signed() const noexcept { return !key_id.empty() && !secret.empty(); }
  // Returns the URL of a key, or of the bucket if the key is empty.
  std::string url_of(const std::string& bucket, const std::string& key) const;
};

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, and
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. Throws ConfigError for an endpoint that is no URL.
S3Access s3_access();

// Names of shards that one URL stands for: "train-{000..099}.tar".

// Returns whether the URL's last part has a range in braces.
bool is_shard_pattern(const std::string& url);
// Returns whether a part before the last one has: a path below a pattern, where nothing is.
bool is_below_shard_pattern(const std::string& url);

// Returns the URLs in order: digits as wide as the first number's; the last range counts fastest. Throws
// DataError(kInvalidArgument) for a range that goes down, is not of numbers, or has too many.
std::vector<std::string> expand_shard_pattern(const std::string& url);

}  // namespace headrace::remote
