// How the objects of stores are reached: Amazon's S3 and those that speak its language, Google's, Azure's and
// Hugging Face's. Read from the environment alone, and never shown.
#pragma once

#include <string>

#include "headrace/devices/base/remote/url.h"

namespace headrace::remote {

struct StoreAccess {
  Scheme store = Scheme::kS3;
  std::string endpoint = {};  // "http://127.0.0.1:9000"; empty: Amazon's of the region
  std::string region = {};
  // Credentials; empty: none.
  std::string key_id = {}, secret = {}, session_token = {};  // of signatures
  std::string bearer = {};
  std::string parameters = {};  // "sv=...&sig=...", which are added to every URL when it is sent

  bool is_signed() const noexcept { return has_key() || !bearer.empty() || !parameters.empty(); }
  bool has_key() const noexcept { return !key_id.empty() && !secret.empty(); }
  // Returns whether an answer may lead to another host, which gets no credentials.
  bool follows_redirects() const noexcept { return store == Scheme::kHf; }

  // Returns the URL of an object, without credentials.
  std::string url_of(const Url& object) const;
  // Returns the URL of a page of the list of the objects below a prefix of the bucket. `token`: of the page that
  // names this one; empty: the first.
  std::string page_url(const Url& bucket, const std::string& prefix, const std::string& token) const;
};

// Reads what the environment says of a store. Throws ConfigError for an endpoint that is no URL, and where it does
// not say whose the containers of az:// are.
StoreAccess store_access(Scheme store);

// What to do where access is denied, with and without credentials, and where nothing is found.
struct StoreHints {
  const char *without, *with, *missing;
};
const StoreHints& hints_of(Scheme store);

}  // namespace headrace::remote
