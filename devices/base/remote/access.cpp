#include "headrace/devices/base/remote/access.h"

#include <algorithm>
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

// Returns an endpoint without '/' at its end.
std::string endpoint_of(std::initializer_list<const char*> names, const std::string& otherwise) {
  std::string endpoint = from_environment(names);
  if (endpoint.empty()) return otherwise;
  if (!is_http_url(endpoint) || endpoint.find_first_of("@?# ") != std::string::npos) {
    throw ConfigError(std::string(*(names.end() - 1)) + " is not the URL of a store",
                      "set it to http://HOST:PORT or https://HOST");
  }
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

StoreAccess s3_access() {
  StoreAccess access{.store = Scheme::kS3,
                     .endpoint = endpoint_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, ""),
                     .region = from_environment({"AWS_REGION", "AWS_DEFAULT_REGION"}),
                     .key_id = from_environment({"AWS_ACCESS_KEY_ID"}),
                     .secret = from_environment({"AWS_SECRET_ACCESS_KEY"}),
                     .session_token = from_environment({"AWS_SESSION_TOKEN"})};
  if (access.region.empty()) access.region = "us-east-1";
  return access;
}

// Google's store takes the signatures of S3, with keys of its own.
StoreAccess gs_access() {
  return {.store = Scheme::kGs,
          .endpoint = endpoint_of({"GS_ENDPOINT_URL"}, "https://storage.googleapis.com"),
          .region = "auto",
          .key_id = from_environment({"GS_ACCESS_KEY_ID"}),
          .secret = from_environment({"GS_SECRET_ACCESS_KEY"}),
          .bearer = from_environment({"CLOUDSDK_AUTH_ACCESS_TOKEN"})};
}

StoreAccess az_access() {
  std::string endpoint = endpoint_of({"AZURE_STORAGE_SERVICE_ENDPOINT"}, "");
  if (endpoint.empty()) {
    const std::string account = from_environment({"AZURE_STORAGE_ACCOUNT"});
    if (account.empty()) {
      throw ConfigError("nothing says whose the containers of az:// are",
                        "set AZURE_STORAGE_ACCOUNT to the name of the storage account");
    }
    endpoint = "https://" + account + ".blob.core.windows.net";
  }
  std::string parameters = from_environment({"AZURE_STORAGE_SAS_TOKEN"});
  if (parameters.starts_with('?')) parameters.erase(0, 1);
  return {.store = Scheme::kAz, .endpoint = std::move(endpoint), .parameters = std::move(parameters)};
}

StoreAccess hf_access() {
  return {.store = Scheme::kHf,
          .endpoint = endpoint_of({"HF_ENDPOINT"}, "https://huggingface.co"),
          .bearer = from_environment({"HF_TOKEN"})};
}

std::string hub_url(const StoreAccess& access, const HubPath& path, const char* api, const char* kind) {
  const std::string url = access.endpoint + api + "/datasets/" + percent_encoded(path.repository, true) + kind +
                          percent_encoded(path.revision, false);
  return path.file.empty() ? url : url + "/" + percent_encoded(path.file, true);
}

}  // namespace

StoreAccess store_access(Scheme store) {
  switch (store) {
    case Scheme::kGs: return gs_access();
    case Scheme::kAz: return az_access();
    case Scheme::kHf: return hf_access();
    default: return s3_access();
  }
}

std::string StoreAccess::url_of(const Url& object) const {
  if (store == Scheme::kHf) return hub_url(*this, hub_path(object.path).value_or(HubPath{}), "", "/resolve/");
  const std::string path = percent_encoded(object.path, true);
  if (!endpoint.empty()) return endpoint + "/" + object.host + "/" + path;
  const std::string host = "s3." + region + ".amazonaws.com/";
  // A bucket with dots matches no certificate of Amazon's.
  if (object.host.find('.') != std::string::npos) return "https://" + host + object.host + "/" + path;
  return "https://" + object.host + "." + host + path;
}

// Parameters stand in bytewise order, as signatures want them.
std::string StoreAccess::page_url(const Url& bucket, const std::string& prefix, const std::string& token) const {
  if (store == Scheme::kHf) {  // whose tokens are URLs
    if (!token.empty()) return token;
    HubPath path = hub_path(prefix).value_or(HubPath{});
    while (path.file.ends_with('/')) path.file.pop_back();
    return hub_url(*this, path, "/api", "/tree/") + "?limit=1000&recursive=true";
  }
  std::string url = url_of({.scheme = store, .host = bucket.host, .path = {}});
  const std::string below = "prefix=" + percent_encoded(prefix, false);
  if (store == Scheme::kAz) {
    if (url.ends_with('/')) url.pop_back();
    url += "?comp=list";
    if (!token.empty()) url += "&marker=" + percent_encoded(token, false);
    return url + "&maxresults=5000&" + below + "&restype=container";
  }
  url += "?";
  if (!token.empty()) url += "continuation-token=" + percent_encoded(token, false) + "&";
  return url + "encoding-type=url&list-type=2&max-keys=1000&" + below;
}

const StoreHints& hints_of(Scheme store) {
  static constexpr StoreHints kS3 = {
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if they are temporary",
      "does AWS_ACCESS_KEY_ID have permission, is the session token still valid, are AWS_REGION and the clock "
      "right?",
      "check the bucket, the key and AWS_ENDPOINT_URL"};
  static constexpr StoreHints kGs = {
      "set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, or CLOUDSDK_AUTH_ACCESS_TOKEN",
      "does GS_ACCESS_KEY_ID have permission, or is CLOUDSDK_AUTH_ACCESS_TOKEN still valid?",
      "check the bucket and the key"};
  static constexpr StoreHints kAz = {
      "set AZURE_STORAGE_SAS_TOKEN to a shared access signature that may read and list, or write",
      "does AZURE_STORAGE_SAS_TOKEN have permission (to read and list, or to write), and is it still valid?",
      "check AZURE_STORAGE_ACCOUNT, the container and the name"};
  static constexpr StoreHints kHf = {
      "set HF_TOKEN, or check the name of the repository: one that is not there is "
      "denied as one that is private",
      "may HF_TOKEN read the repository, and is that its name?",
      "write hf://datasets/OWNER/NAME/FILE, or OWNER/NAME@REVISION/FILE"};
  switch (store) {
    case Scheme::kGs: return kGs;
    case Scheme::kAz: return kAz;
    case Scheme::kHf: return kHf;
    default: return kS3;
  }
}

}  // namespace headrace::remote
