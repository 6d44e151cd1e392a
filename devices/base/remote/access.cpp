#include "headrace/devices/base/remote/access.h"

#include <cstdlib>
#include <initializer_list>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"

namespace headrace::remote {
namespace {

// Returns the first variable that is set and not empty.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return {};
}

void check_endpoint(const std::string& endpoint) {
  const bool usable = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  if (usable && endpoint.find_first_of("@?# ") == std::string::npos) return;
  throw ConfigError("AWS_ENDPOINT_URL is not the URL of a store", "set it to http://HOST:PORT or https://HOST");
}

}  // namespace

std::string S3Access::url_of(const std::string& bucket, const std::string& key) const {
  const std::string path = percent_encoded(key, true);
  if (!endpoint.empty()) return endpoint + "/" + bucket + "/" + path;
  const std::string host = "s3." + region + ".amazonaws.com/";
  // A bucket with dots matches no certificate of Amazon's.
  if (bucket.find('.') != std::string::npos) return "https://" + host + bucket + "/" + path;
  return "https://" + bucket + "." + host + path;
}

S3Access s3_access() {
  S3Access access{.endpoint = from_environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}),
                  .region = from_environment({"AWS_REGION", "AWS_DEFAULT_REGION"}),
                  .key_id = from_environment({"AWS_ACCESS_KEY_ID"}),
                  .secret = from_environment({"AWS_SECRET_ACCESS_KEY"}),
                  .session_token = from_environment({"AWS_SESSION_TOKEN"})};
  if (access.region.empty()) access.region = "us-east-1";
  if (!access.endpoint.empty()) check_endpoint(access.endpoint);
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  return access;
}

}  // namespace headrace::remote
