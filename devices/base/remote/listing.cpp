#include "headrace/devices/base/remote/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {
namespace {

constexpr std::size_t kMaxPage = std::size_t{32} << 20;  // bytes of XML for a thousand keys
constexpr std::size_t kMaxKeys = std::size_t{1} << 26;

[[noreturn]] void fail_listing(const Asked& asked, const std::string& why) {
  throw DataError(ErrorCode::kUnsupported, "the store's listing " + why, {.source = asked.url},
                  "is AWS_ENDPOINT_URL the URL of an S3-compatible store?");
}

std::string text_at(const pugi::xml_node& node, const char* name) { return node.child_value(name); }

class Pages {
 public:
  Pages(const Url& url, std::string prefix, bool by_folders, std::uint64_t limit)
      : access_(std::make_shared<const S3Access>(s3_access())),
        asked_{.url = "s3://" + url.host + "/" + prefix, .is_s3 = true, .is_signed = access_->is_signed()},
        bucket_(access_->url_of(url.host, "")),
        prefix_(std::move(prefix)),
        by_folders_(by_folders),
        limit_(limit) {}

  std::vector<Listed> all() {
    std::string token;
    do {
      token = read_page(token);
    } while (!token.empty() && (limit_ == 0 || listed_.size() < limit_));
    std::ranges::sort(listed_, {}, &Listed::key);
    return std::move(listed_);
  }

 private:
  // The parameters in bytewise order, as the signature wants them.
  std::string page_url(const std::string& token) const {
    std::string query = "?";
    if (!token.empty()) query += "continuation-token=" + percent_encoded(token, false) + "&";
    if (by_folders_) query += "delimiter=%2F&";
    query += "encoding-type=url&list-type=2&max-keys=" + std::to_string(limit_ == 0 ? 1000 : limit_);
    return bucket_ + query + "&prefix=" + percent_encoded(prefix_, false);
  }

  std::string read_page(const std::string& token) {
    const auto call = WholeAnswer::send({.url = page_url(token), .access = access_}, asked_, kMaxPage);
    const WholeAnswer::Result& result = call->wait();
    if (result.error != nullptr) throw DataError(*result.error);
    pugi::xml_document document;
    if (!document.load_buffer(result.body.data(), result.body.size())) fail_listing(asked_, "is no XML");
    const pugi::xml_node list = document.child("ListBucketResult");
    if (list.empty()) fail_listing(asked_, "is none");
    const bool encoded = text_at(list, "EncodingType") == "url";
    const auto key_of = [&](const std::string& text) { return encoded ? percent_decoded(text) : text; };
    for (const pugi::xml_node& object : list.children("Contents")) {
      listed_.push_back({.key = key_of(text_at(object, "Key")),
                         .size = object.child("Size").text().as_ullong(),
                         .etag = text_at(object, "ETag")});
    }
    for (const pugi::xml_node& folder : list.children("CommonPrefixes")) {
      listed_.push_back({.key = key_of(text_at(folder, "Prefix")), .is_folder = true, .etag = {}});
    }
    if (listed_.size() > kMaxKeys) fail_listing(asked_, fmt::format("has more than {} keys", kMaxKeys));
    if (text_at(list, "IsTruncated") != "true") return {};
    std::string next = text_at(list, "NextContinuationToken");
    if (next.empty() || next == token) fail_listing(asked_, "does not say how it goes on");
    return next;
  }

  std::shared_ptr<const S3Access> access_;
  Asked asked_;
  std::string bucket_, prefix_;
  bool by_folders_;
  std::uint64_t limit_;
  std::vector<Listed> listed_;
};

}  // namespace

std::vector<Listed> list_objects(const Url& url, const std::string& prefix, bool by_folders, std::uint64_t limit) {
  return Pages(url, prefix, by_folders, limit).all();
}

}  // namespace headrace::remote
