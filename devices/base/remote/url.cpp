#include "headrace/devices/base/remote/url.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "headrace/devices/base/error.h"

namespace headrace::remote {
namespace {

// Parameters that grant access: a URL with one is a password.
constexpr std::array<std::string_view, 10> kSecrets = {"signature", "x-amz-",     "x-goog-", "sig=",    "token",
                                                       "password",  "credential", "secret",  "api_key", "apikey"};

[[noreturn]] void refuse_url(const std::string& shown, const std::string& why, const std::string& hint) {
  throw DataError(ErrorCode::kInvalidArgument, why, {.source = shown}, hint);
}

bool is_unreserved(unsigned char c) {
  return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '.' || c == '_' || c == '~';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Secrets first: later messages show the URL.
void check_http(const Url& url, const std::string& text) {
  const std::size_t query = url.path.find('?');
  const std::string parameters = query == std::string::npos ? "" : in_lower_case(url.path.substr(query));
  if (std::ranges::any_of(kSecrets, [&](auto secret) { return parameters.find(secret) != std::string::npos; })) {
    refuse_url(text.substr(0, text.find('?')),
               "its parameters grant access, and would be stored with plans and logs",
               "name s3://BUCKET/KEY, with the credentials in the environment");
  }
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; };
  if (std::ranges::any_of(text, is_odd)) {
    refuse_url(text, "holds blanks or control characters", "write them as %20 and the like");
  }
  if (url.path.find('#') != std::string::npos) {
    refuse_url(text, "has a fragment, '#'", "leave it out, or write %23");
  }
}

}  // namespace

Url parse_url(const std::string& text) {
  Url url;
  const std::size_t colon = text.find("://");
  const std::string scheme = text.substr(0, colon);
  url.scheme = scheme == "s3" ? Scheme::kS3 : scheme == "https" ? Scheme::kHttps : Scheme::kHttp;
  const std::size_t begin = colon + 3, slash = std::min(text.find_first_of("/?#", begin), text.size());
  url.host = text.substr(begin, slash - begin);
  url.path = text.substr(slash);
  if (const std::size_t at = url.host.rfind('@'); at != std::string::npos) {
    refuse_url(scheme + "://" + url.host.substr(at + 1) + url.path.substr(0, url.path.find('?')),
               "URLs with a user or a password are not read: they would be stored with plans and logs",
               "leave it out; credentials of s3:// come from the environment");
  }
  if (text.find('\0') != std::string::npos) refuse_url(text, "holds a NUL", "name a URL");
  if (url.host.empty())
    refuse_url(text, url.is_s3() ? "names no bucket" : "names no host", "write SCHEME://HOST/PATH");
  if (!url.is_s3()) {
    if (url.path.empty()) url.path = "/";
    check_http(url, text);
    return url;
  }
  const bool valid =
      std::ranges::all_of(url.host, [](char c) { return is_unreserved(static_cast<unsigned char>(c)); });
  if (!valid) refuse_url(text, "'" + url.host + "' is no bucket's name", "write s3://BUCKET/KEY");
  url.path.erase(0, url.path.starts_with('/') ? 1 : 0);
  return url;
}

std::string in_lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_unreserved(byte) || (c == '/' && keeps_slashes)) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded =
        text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0;
    if (coded) {
      decoded += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

}  // namespace headrace::remote
