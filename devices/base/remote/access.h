// How the objects of S3-compatible stores are reached: from the environment alone, and shown nowhere.
#pragma once

#include <string>

#include "headrace/devices/base/remote/url.h"

namespace headrace::remote {

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

}  // namespace headrace::remote
