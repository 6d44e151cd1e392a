#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cctype>

#include "headrace/tests/support/http_server.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr std::size_t kPiece = 64 << 10;

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~/").find(c) != std::string::npos;
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string parameter(const std::string& target, const std::string& name) {
  const std::size_t query = target.find('?');
  if (query == std::string::npos) return {};
  std::size_t at = target.find("&" + name + "=", query);
  if (target.compare(query + 1, name.size() + 1, name + "=") == 0) at = query;
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return decoded(std::string_view(target).substr(begin, target.find('&', begin) - begin));
}

}  // namespace

HttpServer::HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no socket for the test's server");
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stopped_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  change_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void HttpServer::serve(const std::string& path, std::string bytes, std::string etag) {
  serve(path, ServedFile{.bytes = std::make_shared<const std::string>(std::move(bytes)), .etag = std::move(etag)});
}
void HttpServer::serve(const std::string& path, ServedFile file) {
  const std::lock_guard lock(mutex_);
  files_.insert_or_assign(path, std::move(file));
}
void HttpServer::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.erase(path);
}
void HttpServer::redirect(const std::string& path, const std::string& location) {
  const std::lock_guard lock(mutex_);
  redirects_[path] = location;
}
void HttpServer::misbehave(std::function<Misbehaviour(const ServedRequest&)> how) {
  const std::lock_guard lock(mutex_);
  how_ = std::move(how);
  ++ways_;
  change_.notify_all();
}
void HttpServer::slow_down(std::chrono::milliseconds latency, std::uint64_t bytes_per_second) {
  const std::lock_guard lock(mutex_);
  latency_ = latency;
  rate_ = bytes_per_second;
}
void HttpServer::want_signatures() {
  const std::lock_guard lock(mutex_);
  wants_signatures_ = true;
}
std::optional<std::string> HttpServer::file(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(path);
  return found == files_.end() ? std::nullopt : std::optional(*found->second.bytes);
}
std::size_t HttpServer::open_uploads() const {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}
std::vector<ServedRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}
std::uint64_t HttpServer::request_count() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

void HttpServer::accept_all() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (stopped_) {
      if (socket >= 0) ::close(socket);
      return;
    }
    if (socket < 0) continue;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] {
      talk(socket);
      ::shutdown(socket, SHUT_RDWR);
    });
  }
}

void HttpServer::talk(int socket) {
  std::string received;
  std::vector<char> buffer(kPiece);
  for (;;) {
    const std::size_t end = received.find("\r\n\r\n");
    if (end == std::string::npos) {
      const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
      if (count <= 0) return;
      received.append(buffer.data(), static_cast<std::size_t>(count));
      continue;
    }
    ServedRequest request;
    const std::string head = received.substr(0, end + 2);
    received.erase(0, end + 4);
    const std::size_t space = head.find(' ');
    request.method = head.substr(0, space);
    request.target = head.substr(space + 1, head.find(' ', space + 1) - space - 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t line = head.find("\r\n", at), colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      std::ranges::transform(name, name.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers[name] = head.substr(colon + 2, line - colon - 2);
      at = line + 2;
    }
    if (const auto length = request.headers.find("content-length"); length != request.headers.end()) {
      const std::size_t size = std::stoul(length->second);
      while (received.size() < size) {
        const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
        if (count <= 0) return;
        received.append(buffer.data(), static_cast<std::size_t>(count));
      }
      request.body = received.substr(0, size);
      received.erase(0, size);
    }
    std::chrono::milliseconds latency;
    {
      const std::lock_guard lock(mutex_);
      request.number = requests_.size();
      requests_.push_back(request);
      latency = latency_;
    }
    if (latency.count() > 0) std::this_thread::sleep_for(latency);
    if (!answer(socket, request)) return;
  }
}

bool HttpServer::answer(int socket, const ServedRequest& request) {
  std::optional<ServedFile> file;
  std::string redirected;
  std::function<Misbehaviour(const ServedRequest&)> how;
  bool unsigned_one = false;
  {
    const std::lock_guard lock(mutex_);
    how = how_;
    const std::string path = decoded(request.path());
    if (const auto found = files_.find(path); found != files_.end()) file = found->second;
    if (const auto found = redirects_.find(path); found != redirects_.end()) redirected = found->second;
    unsigned_one = wants_signatures_ && !request.headers.contains("authorization");
  }
  if (unsigned_one) return send_status(socket, "403 Forbidden");
  const Misbehaviour misbehaviour = how ? how(request) : Misbehaviour::kNone;
  switch (misbehaviour) {
    case Misbehaviour::kUnavailable: return send_status(socket, "503 Service Unavailable");
    case Misbehaviour::kTooMany: return send_status(socket, "429 Too Many Requests", "Retry-After: 0\r\n");
    case Misbehaviour::kDenied: return send_status(socket, "403 Forbidden");
    case Misbehaviour::kSilent: hang(socket); return false;
    default: break;
  }
  if (request.method != "GET") return take_upload(socket, request);
  if (!redirected.empty()) return send_status(socket, "302 Found", "Location: " + redirected + "\r\n");
  if (request.target.find("list-type=2") != std::string::npos)
    return send_listing(socket, request, request.path());
  if (!file) return send_status(socket, "404 Not Found");
  return send_file(socket, request, *file, misbehaviour);
}

bool HttpServer::send_file(int socket, const ServedRequest& request, const ServedFile& file, Misbehaviour how) {
  const auto match = request.headers.find("if-match");
  if (match != request.headers.end() && match->second != file.etag)
    return send_status(socket, "412 Precondition Failed");
  const std::uint64_t size = file.bytes->size();
  std::uint64_t first = 0, last = size - 1;
  const auto range = request.headers.find("range");
  const bool ranged = range != request.headers.end() && how != Misbehaviour::kIgnoresRange;
  if (ranged) {
    unsigned long long from = 0, to = 0;
    if (std::sscanf(range->second.c_str(), "bytes=%llu-%llu", &from, &to) != 2 || from >= size) {
      return send_status(socket, "416 Range Not Satisfiable", fmt::format("Content-Range: bytes */{}\r\n", size));
    }
    first = from;
    last = std::min<std::uint64_t>(to, size - 1);
    if (how == Misbehaviour::kWrongRange) first = first > 0 ? first - 1 : first + 1;
  }
  const std::string_view body = std::string_view(*file.bytes).substr(first, last + 1 - first);
  std::string head = ranged ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n";
  if (ranged) head += fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, size);
  if (!file.etag.empty()) head += "ETag: " + file.etag + "\r\n";
  if (!file.last_modified.empty()) head += "Last-Modified: " + file.last_modified + "\r\n";
  head += file.headers;
  if (how == Misbehaviour::kCloses) head += "Connection: close\r\n";
  head += fmt::format("Content-Length: {}\r\n\r\n", body.size());
  if (!send_bytes(socket, head)) return false;
  const bool half = how == Misbehaviour::kReset || how == Misbehaviour::kShort || how == Misbehaviour::kStalls;
  if (!send_bytes(socket, half ? body.substr(0, body.size() / 2) : body)) return false;
  if (how == Misbehaviour::kStalls) hang(socket);
  if (how == Misbehaviour::kReset) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  return !half && how != Misbehaviour::kCloses;
}

// As S3 and Azure take objects, whole or in parts.
bool HttpServer::take_upload(int socket, const ServedRequest& request) {
  const std::string path = decoded(request.path()), number = parameter(request.target, "partNumber"),
                    block = parameter(request.target, "blockid");
  const auto has = [&](const char* name) { return request.target.find(name) != std::string::npos; };
  std::string status = "200 OK", answer, headers, whole;
  {
    const std::lock_guard lock(mutex_);
    const auto upload = uploads_.find(path);
    const bool is_known = upload != uploads_.end();
    if (request.method == "POST" && has("uploads=")) {
      uploads_[path];
      answer = "<InitiateMultipartUploadResult><UploadId>one/+</UploadId></InitiateMultipartUploadResult>";
    } else if (!number.empty() && !is_known) {
      status = "404 Not Found";
    } else if (request.method == "PUT" && !(number + block).empty()) {
      uploads_[path][number.empty() ? block : std::string(8 - number.size(), '0') + number] = request.body;
      headers = "ETag: \"part-" + number + "\"\r\n";
    } else if (request.method == "PUT" && !has("comp=blocklist")) {
      files_[path] = {.bytes = std::make_shared<const std::string>(request.body)};
    } else if (request.method == "DELETE") {
      uploads_.erase(path);
      if (!has("uploadId=")) files_.erase(path);
    } else if (!is_known) {
      status = "404 Not Found";
    } else {
      for (const auto& [name, bytes] : upload->second) {
        const std::string listed = has("comp=blocklist")
                                       ? "<Latest>" + name + "</Latest>"
                                       : "<ETag>&quot;part-" + std::to_string(std::stoi(name)) + "&quot;</ETag>";
        if (request.body.find(listed) != std::string::npos) whole += bytes;
      }
      files_[path] = {.bytes = std::make_shared<const std::string>(std::move(whole))};
      uploads_.erase(upload);
      answer = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";
    }
  }
  return send_status(socket, status, headers, answer);
}

// Lists "BUCKET/..." as a store does, three keys a page.
bool HttpServer::send_listing(int socket, const ServedRequest& request, const std::string& bucket) {
  constexpr std::size_t kPage = 3;
  const std::string prefix = parameter(request.target, "prefix"),
                    token = parameter(request.target, "continuation-token");
  std::set<std::string> keys;
  std::map<std::string, ServedFile> files;
  {
    const std::lock_guard lock(mutex_);
    files = files_;
  }
  for (const auto& [path, file] : files) {
    if (!path.starts_with(bucket + prefix)) continue;
    keys.insert(path.substr(bucket.size()));
  }
  std::string xml = "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>";
  std::size_t listed = 0;
  std::string last;
  bool truncated = false;
  for (const std::string& key : keys) {
    if (!token.empty() && key <= token) continue;
    if (listed++ == kPage) {
      truncated = true;
      break;
    }
    last = key;
    const ServedFile& file = files.at(bucket + key);
    xml += fmt::format("<Contents><Key>{}</Key><Size>{}</Size><ETag>{}</ETag></Contents>", encoded(key),
                       file.bytes->size(), file.etag);
  }
  xml += fmt::format("<IsTruncated>{}</IsTruncated>", truncated);
  if (truncated) xml += "<NextContinuationToken>" + last + "</NextContinuationToken>";
  return send_status(socket, "200 OK", "Content-Type: application/xml\r\n", xml + "</ListBucketResult>");
}

bool HttpServer::send_status(int socket, const std::string& status, const std::string& headers,
                             const std::string& body) {
  return send_bytes(
      socket, fmt::format("HTTP/1.1 {}\r\n{}Content-Length: {}\r\n\r\n{}", status, headers, body.size(), body));
}

bool HttpServer::send_bytes(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t wanted = std::min(bytes.size(), kPiece);
    std::chrono::steady_clock::time_point due{};
    {
      const std::lock_guard lock(mutex_);
      if (rate_ > 0) {
        line_free_ = std::max(line_free_, std::chrono::steady_clock::now());
        line_free_ += std::chrono::nanoseconds(wanted * 1'000'000'000 / rate_);
        due = line_free_;
      }
    }
    if (due != std::chrono::steady_clock::time_point{}) std::this_thread::sleep_until(due);
    const ssize_t count = ::send(socket, bytes.data(), wanted, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent_ += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void HttpServer::hang(int) {
  std::unique_lock lock(mutex_);
  change_.wait(lock, [&, ways = ways_] { return stopped_.load() || ways_ != ways; });
}

}  // namespace headrace::test
