#include "headrace/devices/base/remote/listing.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote/access.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {
namespace {

[[noreturn]] void fail_page(const std::string& url, const std::string& why) {
  throw DataError(ErrorCode::kUnsupported, "the store's listing " + why, {.source = url},
                  "is the endpoint that the environment names a store of this kind?");
}

std::string text_at(const pugi::xml_node& node, const char* name) { return node.child_value(name); }

std::uint64_t size_of_object(const std::string& text, const std::string& key, const std::string& url) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc() && end == text.data() + text.size()) return size;
  fail_page(url, fmt::format("gives '{}' the size '{}', which is no number of bytes", key, text));
}

pugi::xml_document parse_xml(std::span<const std::byte> xml, const std::string& url) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) fail_page(url, "is no XML");
  return document;
}

ListingPage parse_s3_page(std::span<const std::byte> xml, const std::string& url) {
  const pugi::xml_document document = parse_xml(xml, url);
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

// Of a hierarchical account the folders are listed, too.
ListingPage parse_azure_page(std::span<const std::byte> xml, const std::string& url) {
  const pugi::xml_document document = parse_xml(xml, url);
  const pugi::xml_node list = document.child("EnumerationResults");
  if (list.empty()) fail_page(url, "is none");
  ListingPage page;
  for (const pugi::xml_node& blob : list.child("Blobs").children("Blob")) {
    std::string key = text_at(blob, "Name");
    if (key.empty()) fail_page(url, "has an entry without a Name");
    if (std::string_view(blob.child("Name").attribute("Encoded").value()) == "true") key = percent_decoded(key);
    const pugi::xml_node facts = blob.child("Properties");
    if (text_at(facts, "ResourceType") == "directory") continue;
    std::string etag = text_at(facts, "Etag");  // in headers it has quotes
    if (!etag.empty() && !etag.starts_with('"')) etag = '"' + etag + '"';
    const std::uint64_t size = size_of_object(text_at(facts, "Content-Length"), key, url);
    page.listed.push_back({.key = std::move(key), .size = size, .etag = std::move(etag)});
  }
  page.next = text_at(list, "NextMarker");
  return page;
}

// The ETags of files are their network's, and stand in no list: the hash of the content takes their place.
ListingPage parse_hub_page(std::span<const std::byte> json, const std::string& url, const std::string& root) {
  const auto list = nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) fail_page(url, "is no list in JSON");
  ListingPage page;
  for (const auto& entry : list) {
    const auto type = entry.find("type"), path = entry.find("path"), size = entry.find("size"),
               oid = entry.find("oid");
    if (type == entry.end() || *type != "file") continue;
    if (path == entry.end() || !path->is_string()) fail_page(url, "has an entry without a path");
    std::string key = root + path->get<std::string>();
    if (size == entry.end() || !size->is_number_unsigned()) fail_page(url, "gives '" + key + "' no size");
    page.listed.push_back(
        {.key = std::move(key),
         .size = size->get<std::uint64_t>(),
         .content_id = oid != entry.end() && oid->is_string() ? oid->get<std::string>() : "unknown"});
  }
  return page;
}

}  // namespace

ListingPage parse_listing_page(Scheme store, std::span<const std::byte> page, const std::string& url,
                               const std::string& root) {
  if (store == Scheme::kHf) return parse_hub_page(page, url, root);
  return store == Scheme::kAz ? parse_azure_page(page, url) : parse_s3_page(page, url);
}

namespace {

constexpr std::size_t kMaxPage = std::size_t{32} << 20;  // bytes for some thousand keys
constexpr std::size_t kMaxKeys = std::size_t{1} << 26;

class Pages {
 public:
  Pages(const Url& url, std::string prefix)
      : access_(std::make_shared<const StoreAccess>(store_access(url.scheme))),
        bucket_(url),
        asked_{.url = name_of(url.scheme) + "://" + url.host + "/" + prefix,
               .scheme = url.scheme,
               .is_signed = access_->is_signed()},
        prefix_(std::move(prefix)) {
    if (url.scheme != Scheme::kHf) return;
    const HubPath path = hub_path(prefix_).value_or(HubPath{});
    root_ = prefix_.substr(0, prefix_.size() - path.file.size());
    if (!root_.ends_with('/')) root_ += '/';
  }

  std::vector<Listed> all() {
    std::string token;
    do {
      token = read_page(token);
    } while (!token.empty());
    std::ranges::sort(listed_, {}, &Listed::key);
    return std::move(listed_);
  }

 private:
  std::string read_page(const std::string& token) {
    const auto call = WholeAnswer::send({.url = access_->page_url(bucket_, prefix_, token), .access = access_},
                                        asked_, kMaxPage);
    const WholeAnswer::Result& result = call->wait();
    if (result.error != nullptr) {
      // Of a folder that is not there; a store with prefixes lists nothing.
      if (bucket_.scheme == Scheme::kHf && result.error->code() == ErrorCode::kNotFound) return {};
      throw DataError(*result.error);
    }
    ListingPage page = parse_listing_page(bucket_.scheme, result.body, asked_.url, root_);
    if (bucket_.scheme == Scheme::kHf) page.next = result.answer.next_page;
    if (!page.next.empty() && bucket_.scheme == Scheme::kHf && !page.next.starts_with(access_->endpoint + "/"))
      fail_page(asked_.url, fmt::format("goes on at another place, {}", page.next));
    for (const Listed& one : page.listed) {
      if (!one.key.starts_with(prefix_))
        fail_page(asked_.url, fmt::format("names '{}', which is not there", one.key));
      const std::string_view name = std::string_view(one.key).substr(prefix_.size());
      if (!name.empty()) path_below(asked_.url, name);
    }
    std::ranges::move(page.listed, std::back_inserter(listed_));
    if (listed_.size() > kMaxKeys) fail_page(asked_.url, fmt::format("has more than {} keys", kMaxKeys));
    if (!page.next.empty() && page.next == token) fail_page(asked_.url, "does not say how it goes on");
    return page.next;
  }

  std::shared_ptr<const StoreAccess> access_;
  Url bucket_;
  Asked asked_;
  std::string prefix_;
  std::string root_ = {};  // of hf: "OWNER/NAME@REVISION/", as it was written
  std::vector<Listed> listed_;
};

}  // namespace

std::vector<Listed> list_objects(const Url& url, const std::string& prefix) { return Pages(url, prefix).all(); }

}  // namespace headrace::remote
