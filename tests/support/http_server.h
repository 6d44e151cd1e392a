// An HTTP server of this process that can misbehave: files with ranges, ETags, a listing and uploads as stores
// have them, a slow line.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

struct ServedFile {
  std::shared_ptr<const std::string> bytes;
  std::string etag = "\"1\"";  // empty: none is sent
  std::string last_modified = {};
  std::string headers = {};  // more of them, each with its line's end
};

struct ServedRequest {
  std::string method, target;                  // as sent: "/data/a.tar?x=1"
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body = {};
  std::uint64_t number = 0;  // of all requests of the server, from 0

  std::string path() const { return target.substr(0, target.find('?')); }
};

enum class Misbehaviour {
  kNone,
  kUnavailable,   // 503
  kTooMany,       // 429 with Retry-After: 0
  kDenied,        // 403
  kReset,         // half of the body, then a reset
  kShort,         // half of the body, then the end
  kWrongRange,    // other bytes than asked for, and says so
  kIgnoresRange,  // 200 and the whole file
  kStalls,        // half of the body, then nothing
  kSilent,        // nothing at all
  kCloses,        // a good answer, then the end of the connection
};

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns "http://127.0.0.1:PORT".
  std::string url() const;

  void serve(const std::string& path, std::string bytes, std::string etag = "\"1\"");
  void serve(const std::string& path, ServedFile file);
  void remove(const std::string& path);
  // Answers requests of `path` with a redirect.
  void redirect(const std::string& path, const std::string& location);
  // Decides on each request, in turn; answers that hang are cut off. `how` is called by any thread.
  void misbehave(std::function<Misbehaviour(const ServedRequest&)> how);
  // Waits so long before each answer, and sends no more bytes a second over all connections; 0: no limit.
  void slow_down(std::chrono::milliseconds latency, std::uint64_t bytes_per_second);
  // Answers requests without a signature with 403.
  void want_signatures();

  // Returns the bytes of a file; std::nullopt: there is none.
  std::optional<std::string> file(const std::string& path) const;
  // Returns how many uploads in parts were begun and neither finished nor abandoned.
  std::size_t open_uploads() const;
  std::vector<ServedRequest> requests() const;
  std::uint64_t request_count() const;
  std::uint64_t sent_bytes() const { return sent_.load(); }
  std::uint64_t connections() const { return connections_.load(); }

 private:
  void accept_all();
  void talk(int socket);
  bool answer(int socket, const ServedRequest& request);
  bool send_file(int socket, const ServedRequest& request, const ServedFile& file, Misbehaviour how);
  bool send_listing(int socket, const ServedRequest& request, const std::string& bucket);
  bool take_upload(int socket, const ServedRequest& request);
  bool send_status(int socket, const std::string& status, const std::string& headers = "",
                   const std::string& body = "");
  bool send_bytes(int socket, std::string_view bytes);
  void hang(int socket);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> sent_{0}, connections_{0};
  mutable std::mutex mutex_;
  // By mutex_.
  std::condition_variable change_;
  std::map<std::string, ServedFile> files_;
  std::map<std::string, std::string> redirects_;
  std::map<std::string, std::map<std::string, std::string>> uploads_;  // by path and number or name: the parts
  std::function<Misbehaviour(const ServedRequest&)> how_;
  int ways_ = 0;  // that were set
  std::vector<ServedRequest> requests_;
  std::vector<int> sockets_;
  bool wants_signatures_ = false;
  std::chrono::milliseconds latency_{0};
  std::uint64_t rate_ = 0;
  std::chrono::steady_clock::time_point line_free_ = {};  // when the line has sent what was given to it
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace headrace::test
