#include "headrace/devices/base/remote/listing_page.h"

#include <fmt/format.h>

#include <charconv>
#include <pugixml.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/url.h"

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

}  // namespace headrace::remote
