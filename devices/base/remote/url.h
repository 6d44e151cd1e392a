// URLs of data, checked, and the requests' URLs made of them.
#pragma once

#include <string>
#include <string_view>

namespace headrace::remote {

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

}  // namespace headrace::remote
