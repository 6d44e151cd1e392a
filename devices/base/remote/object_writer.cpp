#include "headrace/devices/base/remote/object_writer.h"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/known_files.h"

namespace headrace::remote {
namespace {

// Parts grow with their number, so that 10,000 of them, the most that S3 takes, hold an object of 5 TiB, the
// largest.
constexpr std::size_t kPartBytes = std::size_t{8} << 20, kPartsOfOneSize = 400;
constexpr std::size_t kPartsAtOnce = 4;
constexpr std::size_t kMaxAnswer = std::size_t{1} << 16;

Url checked(const std::string& text) {
  const Url url = parse_url(text);
  if (!url.in_store() || url.scheme == Scheme::kHf) {
    throw ConfigError(text + ": nothing can be written there",
                      "name a file, or an object of a store: s3://BUCKET/KEY, gs:// or az://");
  }
  if (url.host.empty() || url.path.empty() || url.path.ends_with('/')) {
    throw DataError(ErrorCode::kInvalidArgument, "names no object", {.source = text}, "name one: s3://BUCKET/KEY");
  }
  return url;
}

Asked asked_of(const std::string& text, const StoreAccess& access) {
  return {.url = text, .scheme = access.store, .is_signed = access.is_signed(), .is_write = true};
}

// Azure's names of blocks: base64 of one length.
std::string block_name(std::size_t number) { return fmt::format("{:08}", number); }

std::vector<std::byte> as_body(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string escaped(std::string_view text) {
  std::string xml;
  for (const char c : text)
    xml += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '"' ? "&quot;" : std::string(1, c);
  return xml;
}

// Waits for an answer, and throws its error.
const WholeAnswer::Result& checked(WholeAnswer& call) {
  const WholeAnswer::Result& result = call.wait();
  if (result.error != nullptr) throw DataError(*result.error);
  return result;
}

}  // namespace

ObjectWriter::ObjectWriter(const std::string& url)
    : url_(checked(url)),
      access_(std::make_shared<const StoreAccess>(store_access(url_.scheme))),
      asked_(asked_of(url, *access_)) {}

ObjectWriter::~ObjectWriter() {
  if (!committed_) abandon();
}

std::size_t ObjectWriter::part_bytes() const noexcept {
  const std::size_t number = parts_.size() + pending_.size();
  return kPartBytes << std::min<std::size_t>(number / kPartsOfOneSize, 9);
}

void ObjectWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), part_bytes() - part_.size());
    part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (part_.size() == part_bytes()) send_part();
  }
}

std::shared_ptr<WholeAnswer> ObjectWriter::send(const char* method, const std::string& parameters, Bytes body,
                                                std::vector<std::string> headers) const {
  std::string url = access_->url_of(url_);
  if (!parameters.empty()) url += "?" + parameters;
  return WholeAnswer::send({.url = std::move(url),
                            .headers = std::move(headers),
                            .access = access_,
                            .method = method,
                            .body = std::make_shared<const Bytes>(std::move(body))},
                           asked_, kMaxAnswer);
}

std::string ObjectWriter::answer_to(const char* method, const std::string& parameters, Bytes body) const {
  const std::shared_ptr<WholeAnswer> call = send(method, parameters, std::move(body));
  const Bytes& answer = checked(*call).body;
  return {reinterpret_cast<const char*>(answer.data()), answer.size()};
}

void ObjectWriter::begin_parts() {
  if (url_.scheme == Scheme::kAz) {
    upload_ = "blocks";
    return;
  }
  pugi::xml_document answer;
  answer.load_string(answer_to("POST", "uploads=", {}).c_str());
  upload_ = answer.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (!upload_.empty()) return;
  throw DataError(ErrorCode::kUnsupported, "the store does not say how the parts of an object are sent",
                  {.source = asked_.url}, "is the endpoint that the environment names a store of this kind?");
}

void ObjectWriter::send_part() {
  if (upload_.empty()) begin_parts();
  while (pending_.size() >= kPartsAtOnce) take_oldest();
  const std::size_t number = parts_.size() + pending_.size() + 1;
  sent_ += part_.size();
  const std::string parameters = url_.scheme == Scheme::kAz ? "blockid=" + block_name(number) + "&comp=block"
                                                            : fmt::format("partNumber={}&uploadId={}", number,
                                                                          percent_encoded(upload_, false));
  pending_.push_back(send("PUT", parameters, std::exchange(part_, {})));
}

void ObjectWriter::take_oldest() {
  const WholeAnswer::Result& result = checked(*pending_.front());
  parts_.push_back(url_.scheme == Scheme::kAz ? block_name(parts_.size() + 1) : result.answer.etag);
  pending_.pop_front();
}

void ObjectWriter::finish_parts() {
  if (!part_.empty()) send_part();
  while (!pending_.empty()) take_oldest();
  const bool blocks = url_.scheme == Scheme::kAz;
  std::string list;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    list +=
        blocks ? "<Latest>" + parts_[i] + "</Latest>"
               : fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, escaped(parts_[i]));
  }
  if (blocks) {
    answer_to("PUT", "comp=blocklist", as_body("<BlockList>" + list + "</BlockList>"));
    return;
  }
  // It may be 200 and an error: the head of the answer is sent before the parts are joined.
  const std::string answer = answer_to("POST", "uploadId=" + percent_encoded(upload_, false),
                                       as_body("<CompleteMultipartUpload>" + list + "</CompleteMultipartUpload>"));
  pugi::xml_document document;
  document.load_string(answer.c_str());
  if (!document.child("CompleteMultipartUploadResult").empty()) return;
  const std::string_view code = document.child("Error").child_value("Code");
  throw DataError(ErrorCode::kIo, fmt::format("the store does not join the parts of the object: {}", code),
                  {.source = asked_.url}, "try again");
}

void ObjectWriter::commit() {
  if (upload_.empty()) {
    std::vector<std::string> headers;
    if (url_.scheme == Scheme::kAz) headers.emplace_back("x-ms-blob-type: BlockBlob");
    checked(*send("PUT", "", std::move(part_), std::move(headers)));
  } else {
    finish_parts();
  }
  committed_ = true;
  known_files().forget_written(asked_.url);
}

// Azure drops blocks of which no blob was made, after a week.
void ObjectWriter::abandon() noexcept {
  for (const std::shared_ptr<WholeAnswer>& call : pending_) call->cancel();
  if (upload_.empty() || url_.scheme == Scheme::kAz) return;
  try {
    send("DELETE", "uploadId=" + percent_encoded(upload_, false), {});  // nobody waits for the answer
  } catch (const std::exception&) {
  }
}

std::unique_ptr<Upload> create(const std::filesystem::path& url) {
  return std::make_unique<ObjectWriter>(url.string());
}

void remove(const std::filesystem::path& path) {
  const std::string text = path.string();
  const Url url = checked(text);
  const auto access = std::make_shared<const StoreAccess>(store_access(url.scheme));
  const auto call = WholeAnswer::send({.url = access->url_of(url), .access = access, .method = "DELETE"},
                                      asked_of(text, *access), kMaxAnswer);
  const WholeAnswer::Result& result = call->wait();
  if (result.error != nullptr && result.error->code() != ErrorCode::kNotFound) throw DataError(*result.error);
  known_files().forget_written(text);
}

}  // namespace headrace::remote
