#include "headrace/devices/base/remote/whole_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/attempts.h"

namespace headrace::remote {
namespace {

struct Words {
  ErrorCode code;
  std::string what, hint;
};

bool in_store(const Asked& asked) { return asked.scheme != Scheme::kHttp && asked.scheme != Scheme::kHttps; }

Words denied(const Asked& asked, long status) {
  if (!in_store(asked)) {
    return {
        ErrorCode::kInvalidArgument, fmt::format("access is denied (HTTP {})", status),
        "only public files are read over HTTP; read protected ones from a store, s3://, gs://, az:// or hf://"};
  }
  if (!asked.is_signed) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("access is denied to requests without credentials (HTTP {})", status),
            hints_of(asked.scheme).without};
  }
  return {ErrorCode::kInvalidArgument, fmt::format("access is denied to these credentials (HTTP {})", status),
          hints_of(asked.scheme).with};
}

Words redirected(const Asked& asked, const HttpAnswer& answer) {
  if (asked.scheme == Scheme::kS3 && !answer.bucket_region.empty()) {
    return {ErrorCode::kInvalidArgument, "the bucket is in the region " + answer.bucket_region,
            "set AWS_REGION=" + answer.bucket_region};
  }
  return {ErrorCode::kInvalidArgument, fmt::format("leads to another place (HTTP {})", answer.status),
          asked.scheme == Scheme::kS3 ? "set AWS_REGION to the bucket's region, and AWS_ENDPOINT_URL to its store"
                                      : "name that place"};
}

Words words_of(const Asked& asked, const HttpAnswer& answer) {
  // Some stores take a request without a signature for none of theirs.
  if (answer.status == 400 && in_store(asked) && !asked.is_signed) return denied(asked, answer.status);
  switch (answer.status) {
    case 401:
    case 403: return denied(asked, answer.status);
    case 404:
    case 410:
      return {ErrorCode::kNotFound,
              fmt::format("there is no such {} (HTTP {})", asked.is_write ? "bucket" : "file", answer.status),
              in_store(asked) ? hints_of(asked.scheme).missing : "check the URL"};
    default: break;
  }
  if (answer.status >= 300 && answer.status < 400) return redirected(asked, answer);
  const bool refused = answer.status >= 400 && !status_may_pass(answer.status);
  return {refused ? ErrorCode::kUnsupported : ErrorCode::kIo,
          fmt::format("the server answers HTTP {}", answer.status),
          refused ? "is it the right URL?" : "try again later"};
}

Refusal error_of(const Asked& asked, ErrorCode code, const std::string& what, const std::string& hint) {
  return std::make_shared<const DataError>(
      DataError(code, what, {.source = asked.url, .offset = asked.offset}, hint));
}

}  // namespace

Refusal refusal(const Asked& asked, const HttpAnswer& answer, const std::string& given_up) {
  const std::string ending = given_up.empty() ? "" : "; " + given_up;
  if (!answer.trouble.empty()) {
    const char* const hint = answer.distrusted ? "name the file of its authority's certificate in CURL_CA_BUNDLE"
                             : answer.may_pass ? "is the network there, and the server?"
                                               : "check the URL and the server";
    return error_of(asked, answer.may_pass ? ErrorCode::kIo : ErrorCode::kUnsupported,
                    (asked.is_write ? "cannot be written: " : "cannot be fetched: ") + answer.trouble + ending,
                    hint);
  }
  const Words words = words_of(asked, answer);
  return error_of(asked, words.code, words.what + ending, words.hint);
}

Refusal changed(const Asked& asked, const std::string& how) {
  return error_of(asked, ErrorCode::kDataCorrupt, "changed since it was opened: " + how,
                  "files must not change while they are read; start again");
}

std::shared_ptr<WholeAnswer> WholeAnswer::send(HttpRequest request, Asked asked, std::size_t max_body) {
  auto call = std::make_shared<WholeAnswer>(std::move(request), std::move(asked), max_body);
  submit(call, due_after(0));
  return call;
}

const WholeAnswer::Result& WholeAnswer::wait() {
  std::unique_lock lock(mutex_);
  wait_until(changed_, lock, [&] { return over_; });
  return result_;
}

void WholeAnswer::begin(const HttpAnswer&) { result_.body.clear(); }

bool WholeAnswer::take(std::span<const std::byte> bytes) {
  const std::size_t count = std::min(bytes.size(), max_body_ - result_.body.size());
  result_.body.insert(result_.body.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  return count == bytes.size();
}

std::optional<std::chrono::nanoseconds> WholeAnswer::end(const HttpAnswer& answer) {
  const bool good =
      answer.trouble.empty() && ((answer.status >= 200 && answer.status < 300) || answer.status == 416);
  const bool again = answer.trouble.empty() ? status_may_pass(answer.status) : answer.may_pass;
  std::optional<std::chrono::nanoseconds> pause;
  if (!good && again) pause = retries_.next_pause(answer.retry_after);
  if (pause) return pause;
  {
    const std::lock_guard lock(mutex_);
    result_.answer = answer;
    if (!good) result_.error = refusal(asked_, answer, again ? retries_.given_up() : "");
    over_ = true;
  }
  changed_.notify_all();
  return std::nullopt;
}

}  // namespace headrace::remote
