#include "headrace/devices/base/remote/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"

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
               "name s3://BUCKET/KEY or the like, with the credentials in the environment");
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

namespace {

constexpr std::array<const char*, 6> kSchemes{"http", "https", "s3", "gs", "az", "hf"};  // as Scheme has them

Scheme scheme_of(std::string_view name) {
  const auto found = std::ranges::find(kSchemes, name);
  return found == kSchemes.end() ? Scheme::kHttp : static_cast<Scheme>(found - kSchemes.begin());
}

}  // namespace

std::optional<HubPath> hub_path(std::string_view path) {
  const auto take = [&] {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string part(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
    return part;
  };
  const std::string owner = take();
  std::string name = take(), revision = "main";
  if (const std::size_t at = name.find('@'); at != std::string::npos) {
    revision = name.substr(at + 1);
    name.resize(at);
    if (revision == "refs") {  // refs/convert/parquet, refs/pr/3
      revision += "/" + take();
      revision += "/" + take();
    }
  }
  if (owner.empty() || name.empty() || revision.empty()) return std::nullopt;
  return HubPath{.repository = owner + "/" + name, .revision = revision, .file = std::string(path)};
}

std::string name_of(Scheme scheme) { return kSchemes[static_cast<std::size_t>(scheme)]; }

Url parse_url(const std::string& text) {
  Url url;
  const std::size_t colon = text.find("://");
  const std::string scheme = text.substr(0, colon);
  url.scheme = scheme_of(scheme);
  const std::size_t begin = colon + 3, slash = std::min(text.find_first_of("/?#", begin), text.size());
  url.host = text.substr(begin, slash - begin);
  url.path = text.substr(slash);
  if (const std::size_t at = url.host.rfind('@'); at != std::string::npos) {
    refuse_url(scheme + "://" + url.host.substr(at + 1) + url.path.substr(0, url.path.find('?')),
               "URLs with a user or a password are not read: they would be stored with plans and logs",
               "leave it out; credentials of stores come from the environment");
  }
  if (text.find('\0') != std::string::npos) refuse_url(text, "holds a NUL", "name a URL");
  if (url.host.empty()) {
    refuse_url(text, url.in_store() ? "names no bucket" : "names no host", "write SCHEME://HOST/PATH");
  }
  if (!url.in_store()) {
    if (url.path.empty()) url.path = "/";
    check_http(url, text);
    return url;
  }
  const bool valid =
      std::ranges::all_of(url.host, [](char c) { return is_unreserved(static_cast<unsigned char>(c)); });
  if (!valid) refuse_url(text, "'" + url.host + "' is no bucket's name", "write " + scheme + "://BUCKET/KEY");
  url.path.erase(0, url.path.starts_with('/') ? 1 : 0);
  if (url.scheme == Scheme::kHf && (url.host != "datasets" || !hub_path(url.path))) {
    refuse_url(text, "names no dataset", "write hf://datasets/OWNER/NAME/FILE");
  }
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

namespace {

constexpr std::size_t kMaxShards = 100'000;

struct Range {
  std::size_t begin = 0, end = 0;  // of "{...}" in the text
  std::uint64_t first = 0, last = 0;
  std::size_t digits = 0;
};

[[noreturn]] void refuse_pattern(const std::string& url, const std::string& why) {
  throw DataError(ErrorCode::kInvalidArgument, why, {.source = url}, "write it like train-{000..099}.tar");
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::size_t last_part(std::string_view url) { return url.find_last_of('/') + 1; }

bool has_range(std::string_view text) {
  const std::size_t open = text.find('{');
  return open != std::string_view::npos && text.find("..", open) < text.find('}', open) &&
         text.find('}', open) != std::string_view::npos;
}

std::optional<Range> first_range(const std::string& url) {
  Range range;
  range.begin = url.find('{', last_part(url));
  if (range.begin == std::string::npos) return std::nullopt;
  range.end = url.find('}', range.begin) + 1;
  if (range.end == 0) refuse_pattern(url, "has a '{' without its '}'");
  const std::string_view within = std::string_view(url).substr(range.begin + 1, range.end - range.begin - 2);
  const std::size_t dots = within.find("..");
  if (dots == std::string_view::npos) refuse_pattern(url, "has braces without '..' between two numbers");
  const auto first = number_of(within.substr(0, dots)), last = number_of(within.substr(dots + 2));
  if (!first || !last) refuse_pattern(url, fmt::format("'{}' is not two numbers", within));
  if (*last < *first) refuse_pattern(url, fmt::format("'{}' goes down", within));
  if (*last - *first >= kMaxShards)
    refuse_pattern(url, fmt::format("'{}' names more than {} files", within, kMaxShards));
  range.first = *first;
  range.last = *last;
  range.digits = dots;
  return range;
}

}  // namespace

bool is_shard_pattern(const std::string& url) { return has_range(std::string_view(url).substr(last_part(url))); }

bool is_below_shard_pattern(const std::string& url) {
  return has_range(std::string_view(url).substr(0, last_part(url)));
}

std::vector<std::string> expand_shard_pattern(const std::string& url) {
  std::vector<std::string> urls = {url};
  while (const std::optional<Range> range = first_range(urls.front())) {
    std::vector<std::string> more;
    for (const std::string& one : urls) {
      const Range here = *first_range(one);
      for (std::uint64_t i = range->first; i <= range->last; ++i) {
        more.push_back(one.substr(0, here.begin) + fmt::format("{:0{}}", i, range->digits) + one.substr(here.end));
      }
    }
    if (more.size() > kMaxShards) refuse_pattern(url, fmt::format("names more than {} files", kMaxShards));
    urls = std::move(more);
  }
  return urls;
}

}  // namespace headrace::remote
