#include "headrace/devices/base/remote/listing.h"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote/url.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {
namespace {

[[noreturn]] void fail_page(const std::string& url, const std::string& why) {
  throw DataError(ErrorCode::kUnsupported, "the store's listing " + why, {.source = url},
                  "is AWS_ENDPOINT_URL the URL of an S3-compatible store?");
}

std::string text_at(const pugi::xml_node& node, const char* name) { return node.child_value(name); }

std::uint64_t size_of_object(const std::string& text, const std::string& key, const std::string& url) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc() && end == text.data() + text.size()) return size;
  fail_page(url, fmt::format("gives '{}' the size '{}', which is no number of bytes", key, text));
}

}  // namespace

ListingPage parse_listing_page(std::span<const std::byte> xml, const std::string& url) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) fail_page(url, "is no XML");
  const pugi::xml_node list = document.child("ListBucketResult");
  if (list.empty()) fail_page(url, "is none");
  const bool encoded = text_at(list, "EncodingType") == "url";
  ListingPage page;
  for (const pugi::xml_node& object : list.children("Contents")) {
    std::string key = text_at(object, "Key");
    if (key.empty()) fail_page(url, "has an entry without a Key");
    if (encoded) key = percent_decoded(key);
    const std::uint64_t size = size_of_object(text_at(object, "Size"), key, url);
    page.listed.push_back({.key = std::move(key), .size = size, .etag = text_at(object, "ETag")});
  }
  if (text_at(list, "IsTruncated") != "true") return page;
  page.next = text_at(list, "NextContinuationToken");
  if (page.next.empty()) fail_page(url, "does not say how it goes on");
  return page;
}

namespace {

constexpr std::size_t kMaxPage = std::size_t{32} << 20;  // bytes of XML for a thousand keys
constexpr std::size_t kMaxKeys = std::size_t{1} << 26;

[[noreturn]] void fail_listing(const Asked& asked, const std::string& why) {
  throw DataError(ErrorCode::kUnsupported, "the store's listing " + why, {.source = asked.url},
                  "is AWS_ENDPOINT_URL the URL of an S3-compatible store?");
}

class Pages {
 public:
  Pages(const Url& url, std::string prefix)
      : access_(std::make_shared<const S3Access>(s3_access())),
        asked_{.url = "s3://" + url.host + "/" + prefix, .is_s3 = true, .is_signed = access_->is_signed()},
        bucket_(access_->url_of(url.host, "")),
        prefix_(std::move(prefix)) {}

  std::vector<Listed> all() {
    std::string token;
    do {
      token = read_page(token);
    } while (!token.empty());
    std::ranges::sort(listed_, {}, &Listed::key);
    return std::move(listed_);
  }

 private:
  // The parameters in bytewise order, as the signature wants them.
  std::string page_url(const std::string& token) const {
    std::string query = "?";
    if (!token.empty()) query += "continuation-token=" + percent_encoded(token, false) + "&";
    query += "encoding-type=url&list-type=2&max-keys=1000&prefix=";
    return bucket_ + query + percent_encoded(prefix_, false);
  }

  std::string read_page(const std::string& token) {
    const auto call = WholeAnswer::send({.url = page_url(token), .access = access_}, asked_, kMaxPage);
    const WholeAnswer::Result& result = call->wait();
    if (result.error != nullptr) throw DataError(*result.error);
    ListingPage page = parse_listing_page(result.body, asked_.url);
    for (const Listed& one : page.listed) {
      if (!one.key.starts_with(prefix_))
        fail_listing(asked_, fmt::format("names '{}', which is not there", one.key));
      const std::string_view name = std::string_view(one.key).substr(prefix_.size());
      if (!name.empty()) path_below(asked_.url, name);
    }
    std::ranges::move(page.listed, std::back_inserter(listed_));
    if (listed_.size() > kMaxKeys) fail_listing(asked_, fmt::format("has more than {} keys", kMaxKeys));
    if (!page.next.empty() && page.next == token) fail_listing(asked_, "does not say how it goes on");
    return page.next;
  }

  std::shared_ptr<const S3Access> access_;
  Asked asked_;
  std::string bucket_, prefix_;
  std::vector<Listed> listed_;
};

}  // namespace

std::vector<Listed> list_objects(const Url& url, const std::string& prefix) { return Pages(url, prefix).all(); }

}  // namespace headrace::remote
