// Explains answers that report no success, and makes short requests whose whole answer is waited for: the kind of
// a file, the list of a store.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/attempts.h"
#include "headrace/devices/base/remote/http_client.h"

namespace headrace::remote {

// Explain an answer that reports no success, and say what to do next.

// An error that every reader throws a copy of; null: none.
using Refusal = std::shared_ptr<const DataError>;

// Which file an answer is about.
struct Asked {
  std::string url = {};  // as the user wrote it
  Scheme scheme = Scheme::kHttps;
  bool is_signed = false;
  bool is_write = false;
  std::uint64_t offset = ~std::uint64_t{0};
};

// Returns the DataError for an answer that no further attempt would change, or for the last one of those that
// `given_up` tells of: kNotFound, kInvalidArgument if access is denied, kUnsupported, or kIo.
Refusal refusal(const Asked& asked, const HttpAnswer& answer, const std::string& given_up);
// Returns the DataError for a file that is not the one that was opened.
Refusal changed(const Asked& asked, const std::string& how);

// A request with retries. Thread-safe.
class WholeAnswer final : public HttpCall {
 public:
  struct Result {
    HttpAnswer answer;
    std::vector<std::byte> body;  // at most what was asked for
    Refusal error;                // null: status 200 to 299, or 416
  };

  // Sends the request, and takes at most `max_body` bytes of the answer.
  static std::shared_ptr<WholeAnswer> send(HttpRequest request, Asked asked, std::size_t max_body);

  WholeAnswer(HttpRequest request, Asked asked, std::size_t max_body)
      : request_(std::move(request)), asked_(std::move(asked)), max_body_(max_body) {}

  // Blocks until the answer is there.
  const Result& wait();

  HttpRequest request() override { return request_; }
  void begin(const HttpAnswer& answer) override;
  bool take(std::span<const std::byte> bytes) override;
  std::optional<std::chrono::nanoseconds> end(const HttpAnswer& answer) override;

 private:
  const HttpRequest request_;
  const Asked asked_;
  const std::size_t max_body_;
  Retries retries_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // by mutex_, as is the result until then
  Result result_;
};

}  // namespace headrace::remote
