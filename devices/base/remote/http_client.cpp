#include "headrace/devices/base/remote/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/remote/attempts.h"
#include "headrace/devices/base/remote/pace.h"

namespace headrace::remote {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr std::size_t kMinActive = 4, kMaxActive = 128;            // requests at once
constexpr std::uint64_t kUnknownBytes = std::uint64_t{256} << 10;  // of an answer whose size is not known
constexpr long kMaxRedirects = 5, kBufferBytes = 256 << 10;
constexpr int kMaxWaitMs = 1000;

// Whether the next attempt may fare better.
bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

// The file of certificates of authorities that the environment names, as curl's own command reads it; empty:
// libcurl's.
std::string certificate_authorities() {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0') return file;
  }
  return {};
}

std::string trouble_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: return "nothing came for too long";
    case CURLE_PEER_FAILED_VERIFICATION: return "the server's certificate is not trusted";
    case CURLE_SSL_CACERT_BADFILE:
      return fmt::format("there are no certificates in '{}'", certificate_authorities());
    default: return curl_easy_strerror(code);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// One attempt of a call, in libcurl's hands.
class Attempt {
 public:
  explicit Attempt(std::shared_ptr<HttpCall> call) : call_(std::move(call)), handle_(curl_easy_init()) {
    if (handle_ == nullptr) throw std::bad_alloc();
    prepare(call_->request());
  }
  ~Attempt() {
    curl_easy_cleanup(handle_);
    curl_slist_free_all(headers_);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  CURL* handle() const noexcept { return handle_; }
  const std::shared_ptr<HttpCall>& call() const noexcept { return call_; }
  // Returns the bytes that are still to come.
  std::uint64_t left() const noexcept { return expected_ > taken_ ? expected_ - taken_ : 0; }

  HttpAnswer finish(CURLcode code) {
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &answer_.status);
    curl_off_t first = 0, sent = 0, after = 0;
    curl_easy_getinfo(handle_, CURLINFO_STARTTRANSFER_TIME_T, &first);
    curl_easy_getinfo(handle_, CURLINFO_PRETRANSFER_TIME_T, &sent);
    if (first > sent && !uploads_) answer_.latency_seconds = static_cast<double>(first - sent) * 1e-6;
    curl_easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &after);
    if (after > 0) answer_.retry_after = static_cast<std::uint64_t>(after);
    if (code != CURLE_OK && !enough_) {
      answer_.trouble = trouble_of(code);
      answer_.may_pass = may_pass(code);
      answer_.distrusted = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    }
    return answer_;
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(handle_, option, value) != CURLE_OK) throw std::bad_alloc();
  }

  void prepare(const HttpRequest& request) {
    if (request.range) expected_ = request.range->second - request.range->first + 1;
    set(CURLOPT_URL, with_parameters(request).c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    set(CURLOPT_BUFFERSIZE, kBufferBytes);
    set(CURLOPT_USERAGENT, "headrace");
    if (const std::string file = certificate_authorities(); !file.empty()) set(CURLOPT_CAINFO, file.c_str());
    set(CURLOPT_PRIVATE, this);
    set(CURLOPT_HEADERFUNCTION, &Attempt::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Attempt::on_body);
    set(CURLOPT_WRITEDATA, this);
    const auto stall = timing().stall;
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(stall.count()));
    if (request.range) {
      const std::string range = std::to_string(request.range->first) + "-" + std::to_string(request.range->second);
      set(CURLOPT_RANGE, range.c_str());
    }
    for (const std::string& header : request.headers) add_header(header);
    if (request.method != nullptr) set(CURLOPT_CUSTOMREQUEST, request.method);
    if (request.body != nullptr) give_body(*request.body);
    if (request.access != nullptr) give_credentials(*request.access, request.body.get());
    if (request.access == nullptr || request.access->follows_redirects()) {
      set(CURLOPT_FOLLOWLOCATION, 1L);
      set(CURLOPT_MAXREDIRS, kMaxRedirects);
      // Never from https to http.
      set(CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https") ? "https" : "http,https");
    }
    if (headers_ != nullptr) set(CURLOPT_HTTPHEADER, headers_);
  }

  static std::string with_parameters(const HttpRequest& request) {
    if (request.access == nullptr || request.access->parameters.empty()) return request.url;
    return request.url + (request.url.find('?') == std::string::npos ? "?" : "&") + request.access->parameters;
  }

  // REQUIRES: the call keeps the bytes until it has ended.
  void give_body(const std::vector<std::byte>& body) {
    uploads_ = true;
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.empty() ? "" : reinterpret_cast<const char*>(body.data()));
    add_header("Content-Type: application/octet-stream");
    // libcurl would sign an "Expect:" that it does not send.
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
  }

  // Where signatures are used redirects are not followed: another host must not get the session token. libcurl
  // gives a bearer's token to the first host alone.
  void give_credentials(const StoreAccess& access, const std::vector<std::byte>* body) {
    if (access.store == Scheme::kAz) add_header("x-ms-version: 2021-08-06");
    if (!access.has_key() && !access.bearer.empty()) {
      set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      set(CURLOPT_XOAUTH2_BEARER, access.bearer.c_str());
    }
    if (!access.has_key()) return;
    set(CURLOPT_AWS_SIGV4, ("aws:amz:" + access.region + ":s3").c_str());
    set(CURLOPT_USERNAME, access.key_id.c_str());
    set(CURLOPT_PASSWORD, access.secret.c_str());
    Sha256 hash;  // S3 wants that of the body to be signed
    if (body != nullptr) hash.update(*body);
    add_header("x-amz-content-sha256: " + hash.finish_hex());
    if (!access.session_token.empty()) add_header("X-Amz-Security-Token: " + access.session_token);
  }

  void add_header(const std::string& line) {
    curl_slist* const longer = curl_slist_append(headers_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    headers_ = longer;
  }

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    try {
      static_cast<Attempt*>(self)->take_header({data, size * count});
      return size * count;
    } catch (const std::exception&) {
      return 0;
    }
  }

  void take_header(std::string_view line) {
    if (line.starts_with("HTTP/")) answer_ = {};  // of a redirect, or 100 Continue, before
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string name = in_lower_case(line.substr(0, colon));
    const std::string value(trimmed(line.substr(colon + 1)));
    if (name == "etag") answer_.etag = value;
    if (name == "last-modified") answer_.last_modified = value;
    if (name == "content-range") answer_.content_range = value;
    if (name == "location") answer_.location = value;
    if (name == "x-amz-bucket-region") answer_.bucket_region = value;
    if (name == "link" && value.starts_with('<') && value.ends_with("rel=\"next\""))
      answer_.next_page = value.substr(1, value.find('>') - 1);
    if (name != "content-length") return;
    std::uint64_t length = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), length).ec == std::errc())
      answer_.length = length;
  }

  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Attempt*>(self)->take_body(std::as_bytes(std::span(data, size * count))) ? size * count : 0;
  }

  bool take_body(std::span<const std::byte> bytes) {
    http_counters().bytes += bytes.size();
    taken_ += bytes.size();
    if (!begun_) {
      curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &answer_.status);
      call_->begin(answer_);
      begun_ = true;
    }
    enough_ = !call_->take(bytes);
    return !enough_;
  }

  std::shared_ptr<HttpCall> call_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
  HttpAnswer answer_;
  bool begun_ = false, enough_ = false, uploads_ = false;
  std::uint64_t expected_ = kUnknownBytes, taken_ = 0;  // bytes of the body

 public:
  Time heard = std::chrono::steady_clock::now();  // when its last byte moved
  curl_off_t moved = 0;                           // bytes, by then
};

class Client {
 public:
  Client() : process_(getpid()), multi_(curl_multi_init()) {
    if (multi_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(kMaxActive));
    thread_ = std::thread([this] { run(); });
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Ends the thread: OpenSSL frees at the process's end what it would use. Calls are answered no more.
  void stop() {
    stopped_.store(true);
    wake();
    thread_.join();
  }

  bool is_here() const noexcept { return process_ == getpid(); }

  void submit(std::shared_ptr<HttpCall> call, std::uint64_t due) {
    {
      const std::lock_guard lock(mutex_);
      queue_.emplace(due, std::move(call));
    }
    wake();
  }
  void expedite(const HttpCall& call) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(queue_, &call, [](const auto& queued) { return queued.second.get(); });
    if (found == queue_.end() || found->first == kNow) return;
    auto queued = queue_.extract(found);
    queued.key() = kNow;
    queue_.insert(std::move(queued));
  }
  void wake() noexcept { curl_multi_wakeup(multi_); }

 private:
  struct Paused {
    std::shared_ptr<HttpCall> call;
    Time until;
  };

  void run() {
    // Signals are others' to handle. A SIGPIPE of a connection that was closed stays pending, and the call fails.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (!stopped_.load()) {
      drop_cancelled();
      start_due();
      int running = 0;
      const std::uint64_t before = http_counters().bytes.load();
      curl_multi_perform(multi_, &running);
      pace_.note_bytes(std::chrono::steady_clock::now(), http_counters().bytes.load() - before, in_flight(),
                       others_wait());
      http_counters().in_flight_target.store(pace_.bytes(), std::memory_order_relaxed);
      http_counters().bandwidth_delay.store(pace_.bandwidth_delay(), std::memory_order_relaxed);
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
      }
      end_stalled();
      curl_multi_poll(multi_, nullptr, 0, wait_ms(), nullptr);
    }
  }

  int wait_ms() const {
    using std::chrono::duration_cast, std::chrono::milliseconds;
    const Time now = std::chrono::steady_clock::now();
    milliseconds wait(active_.empty() ? kMaxWaitMs
                                      : std::clamp<int>(static_cast<int>(timing().stall.count() / 4), 5, 250));
    for (const Paused& paused : paused_) {
      wait = std::min(
          wait, std::max(milliseconds(0), duration_cast<milliseconds>(paused.until - now) + milliseconds(1)));
    }
    return static_cast<int>(wait.count());
  }

  void drop_cancelled() {
    std::erase_if(paused_, [](const Paused& paused) { return paused.call->cancelled(); });
    std::erase_if(active_, [&](const auto& attempt) {
      if (!attempt->call()->cancelled()) return false;
      curl_multi_remove_handle(multi_, attempt->handle());
      return true;
    });
  }

  bool may_start() const {
    return active_.size() < kMinActive || (active_.size() < kMaxActive && in_flight() < pace_.bytes());
  }

  std::uint64_t in_flight() const {
    std::uint64_t bytes = 0;
    for (const auto& attempt : active_) bytes += attempt->left();
    return bytes;
  }

  bool others_wait() {
    const std::lock_guard lock(mutex_);
    return !queue_.empty();
  }

  void start_due() {
    const Time now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < paused_.size() && may_start();) {
      if (paused_[i].until > now) {
        ++i;
        continue;
      }
      std::shared_ptr<HttpCall> call = std::move(paused_[i].call);
      paused_.erase(paused_.begin() + static_cast<std::ptrdiff_t>(i));
      ++http_counters().retries;
      start(std::move(call));
    }
    while (may_start()) {
      std::shared_ptr<HttpCall> call;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) return;
        call = std::move(queue_.begin()->second);
        queue_.erase(queue_.begin());
      }
      if (!call->cancelled()) start(std::move(call));
    }
  }

  void start(std::shared_ptr<HttpCall> call) {
    ++http_counters().requests;
    try {
      active_.push_back(std::make_unique<Attempt>(call));
      if (curl_multi_add_handle(multi_, active_.back()->handle()) == CURLM_OK) return;
      active_.pop_back();
    } catch (const std::bad_alloc&) {
    }
    settle(call, {.trouble = "there is no memory for it", .may_pass = true});
  }

  void finish(CURL* handle, CURLcode code) {
    const auto found = std::ranges::find(active_, handle, [](const auto& attempt) { return attempt->handle(); });
    if (found != active_.end()) end(found - active_.begin(), code);
  }

  void end(std::ptrdiff_t which, CURLcode code) {
    const std::unique_ptr<Attempt> attempt = std::move(active_[static_cast<std::size_t>(which)]);
    active_.erase(active_.begin() + which);
    curl_multi_remove_handle(multi_, attempt->handle());
    const HttpAnswer answer = attempt->finish(code);
    if (answer.latency_seconds > 0) {
      pace_.note_delay(std::chrono::steady_clock::now(), answer.latency_seconds);
      std::atomic<double>& latency = http_counters().latency_seconds;
      const double before = latency.load();
      latency.store(before == 0 ? answer.latency_seconds : 0.8 * before + 0.2 * answer.latency_seconds);
    }
    settle(attempt->call(), answer);
  }

  void settle(const std::shared_ptr<HttpCall>& call, const HttpAnswer& answer) {
    const auto pause = call->end(answer);
    if (pause) paused_.push_back({.call = call, .until = std::chrono::steady_clock::now() + *pause});
  }

  // libcurl's own limit counts whole seconds.
  void end_stalled() {
    const Time now = std::chrono::steady_clock::now();
    for (std::size_t i = active_.size(); i-- > 0;) {
      Attempt& attempt = *active_[i];
      curl_off_t received = 0, sent = 0;
      curl_easy_getinfo(attempt.handle(), CURLINFO_SIZE_DOWNLOAD_T, &received);
      curl_easy_getinfo(attempt.handle(), CURLINFO_SIZE_UPLOAD_T, &sent);
      if (received + sent != attempt.moved) {
        attempt.moved = received + sent;
        attempt.heard = now;
      } else if (now - attempt.heard > timing().stall) {
        end(static_cast<std::ptrdiff_t>(i), CURLE_OPERATION_TIMEDOUT);
      }
    }
  }

  pid_t process_;
  CURLM* multi_;
  std::thread thread_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::multimap<std::uint64_t, std::shared_ptr<HttpCall>> queue_;  // by mutex_, and by deadline
  // By its thread.
  std::vector<std::unique_ptr<Attempt>> active_;
  std::vector<Paused> paused_;
  Pace pace_;
};

Client* the_client = nullptr;

void stop_client() {
  if (the_client != nullptr && the_client->is_here()) the_client->stop();
}

// Never destroyed: threads may wait for answers while the process ends. Another one in a forked process, where the
// first one's thread does not exist.
Client& client() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (the_client == nullptr) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    std::atexit(stop_client);  // before what OpenSSL registered: last in, first out
  }
  if (the_client == nullptr || !the_client->is_here()) the_client = new Client;
  return *the_client;
}

}  // namespace

HttpCounters& http_counters() noexcept {
  static HttpCounters counters;
  return counters;
}

std::uint64_t due_after(std::uint64_t bytes) noexcept {
  return http_counters().bytes.load(std::memory_order_relaxed) + bytes;
}

void submit(std::shared_ptr<HttpCall> call, std::uint64_t due) { client().submit(std::move(call), due); }

void expedite(const HttpCall& call) { client().expedite(call); }

void wake_client() noexcept { client().wake(); }

}  // namespace headrace::remote
