// Requests over HTTP: one thread runs all of the process's through libcurl, several at once, with connections
// kept.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/remote/access.h"

namespace headrace::remote {

struct HttpRequest {
  std::string url;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range = {};  // first and last byte
  std::vector<std::string> headers = {};                              // "If-Match: ..."
  std::shared_ptr<const StoreAccess> access = {};                     // null: plain HTTP, which follows redirects
  const char* method = nullptr;                                       // null: GET
  std::shared_ptr<const std::vector<std::byte>> body = {};            // null: none
};

// The outcome of one attempt.
struct HttpAnswer {
  long status = 0;  // 0: none came
  std::string etag = {}, last_modified = {}, content_range = {}, location = {}, bucket_region = {};
  std::string next_page = {};                     // the URL in its Link header
  std::optional<std::uint64_t> length = {};       // of the body, as announced
  std::optional<std::uint64_t> retry_after = {};  // seconds
  std::string trouble = {};  // what went wrong with the connection; empty: the answer is complete
  bool may_pass = false;     // that trouble may be gone at the next attempt
  bool distrusted = false;   // the trouble is the server's certificate
  double latency_seconds = 0;
};

// A request with its retries. Its methods are called by the client's thread, none at once, and do not throw.
class HttpCall {
 public:
  virtual ~HttpCall() = default;

  // Returns the next attempt's request.
  virtual HttpRequest request() = 0;
  // Called once the headers of an attempt are there, if it has a body.
  virtual void begin(const HttpAnswer& answer) = 0;
  // Takes a piece of the body. Returns false if no more is wanted.
  virtual bool take(std::span<const std::byte> bytes) = 0;
  // Ends an attempt. Returns the pause before the next one; std::nullopt if there is none.
  virtual std::optional<std::chrono::nanoseconds> end(const HttpAnswer& answer) = 0;

  // Lets the client forget the call soon, without end().
  void cancel() noexcept { cancelled_.store(true); }
  bool cancelled() const noexcept { return cancelled_.load(); }

 private:
  std::atomic<bool> cancelled_{false};
};

// A deadline is a number of received bytes (HttpCounters::bytes); kNow is before all others.
constexpr std::uint64_t kNow = 0;
// Returns the deadline of an answer that is needed after so many more bytes.
std::uint64_t due_after(std::uint64_t bytes) noexcept;
// Starts a call. Calls that wait for a free slot start in order of their deadlines.
void submit(std::shared_ptr<HttpCall> call, std::uint64_t due);
// Sets the deadline of a call to kNow, if it has not started.
void expedite(const HttpCall& call);
// Lets the client see cancelled calls now.
void wake_client() noexcept;

// The process's counters, which the client keeps but for held_bytes.
struct HttpCounters {
  std::atomic<std::uint64_t> requests{0}, retries{0}, bytes{0};
  std::atomic<double> latency_seconds{0};
  std::atomic<std::uint64_t> in_flight_target{0};  // bytes (pace.h)
  std::atomic<std::uint64_t> bandwidth_delay{0};   // bytes; 0: not known yet
};
HttpCounters& http_counters() noexcept;

}  // namespace headrace::remote
