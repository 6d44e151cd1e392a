// What file.h asks about URLs: what is there, and opening it.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/fetch_cache.h"
#include "headrace/devices/base/remote/known_files.h"
#include "headrace/devices/base/remote/listing.h"
#include "headrace/devices/base/remote/url.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {
namespace {

// Fetched with a file's size, since its format is asked for next.
constexpr std::uint64_t kHead = std::uint64_t{16} << 10;
constexpr std::size_t kMaxAttempts = 5;  // where an answer contradicts itself

class OpenFile final : public Handle {
 public:
  explicit OpenFile(std::shared_ptr<RemoteFile> file) : file_(std::move(file)) {}
  ~OpenFile() override { file_->drop_all(); }
  std::uint64_t size() const noexcept override { return file_->version().size; }
  std::uint64_t version() const noexcept override { return file_->version().number(); }
  bool is_versioned() const noexcept override { return file_->version().is_versioned(); }
  const std::string& requested() const noexcept override { return file_->version().url; }
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into) override {
    return file_->read_some(offset, into);
  }
  void will_read(std::span<const ByteExtent> extents) override { file_->will_read(extents); }
  void will_read_from(std::uint64_t offset, std::uint64_t bytes_before) override {
    file_->will_read_from(offset, bytes_before);
  }

 private:
  std::shared_ptr<RemoteFile> file_;
};

FileVersion version_of(const std::string& text) {
  const Url url = parse_url(text);
  FileVersion version;
  version.asked.url = version.url = text;
  version.asked.scheme = url.scheme;
  if (!url.in_store()) return version;
  version.access = std::make_shared<const StoreAccess>(store_access(url.scheme));
  version.asked.is_signed = version.access->is_signed();
  version.url = version.access->url_of(url);
  return version;
}

// Returns the size that "bytes 0-16383/1234" or "bytes */0" ends with.
std::optional<std::uint64_t> total_of(const std::string& content_range) {
  const std::size_t slash = content_range.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  std::uint64_t total = 0;
  const char* const end = content_range.data() + content_range.size();
  const auto [stop, error] = std::from_chars(content_range.data() + slash + 1, end, total);
  return error == std::errc() && stop == end ? std::optional(total) : std::nullopt;
}

// A question about one file, on its way.
class Question {
 public:
  explicit Question(const std::string& text) : version_(version_of(text)) { send(); }

  // Blocks. Throws DataError.
  KnownFiles::Found answer() {
    for (std::size_t attempt = 1;; ++attempt) {
      const WholeAnswer::Result& result = call_->wait();
      if (result.error != nullptr) throw DataError(*result.error);
      if (take(result)) return {.version = version_, .head = std::move(head_)};
      if (attempt == kMaxAttempts) {
        throw DataError(ErrorCode::kUnsupported, "the server does not say how large the file is",
                        {.source = version_.asked.url},
                        "it needs Content-Length, or Content-Range for a range; download the file");
      }
      send();
    }
  }

 private:
  void send() {
    call_ = WholeAnswer::send({.url = version_.url,
                               .range = std::pair<std::uint64_t, std::uint64_t>(0, kHead - 1),
                               .access = version_.access},
                              version_.asked, kHead);
  }

  bool take(const WholeAnswer::Result& result) {
    const HttpAnswer& answer = result.answer;
    const auto size = answer.status == 200 ? answer.length : total_of(answer.content_range);
    if (!size) return false;
    if (answer.status == 206 && !answer.content_range.starts_with("bytes 0-")) return false;
    head_ = result.body;
    if (answer.status == 416) head_.clear();
    if (head_.size() != std::min<std::uint64_t>(*size, kHead)) return false;
    version_.size = *size;
    version_.etag = answer.etag;
    version_.last_modified = answer.last_modified;
    return true;
  }

  FileVersion version_;
  std::vector<std::byte> head_;
  std::shared_ptr<WholeAnswer> call_;
};

FileVersion listed_version(const std::string& text, KnownFiles::Listing listing) {
  FileVersion version = version_of(text);
  version.size = listing.size;
  version.etag = std::move(listing.etag);
  version.last_modified = std::move(listing.last_modified);
  return version;
}

// Asks the server, unless it was asked a moment ago.
KnownFiles::Found find_out_now(const std::string& text) {
  if (auto found = known_files().find(text)) return *std::move(found);
  known_files().forget_listed(text);
  KnownFiles::Found found = Question(text).answer();
  known_files().note(text, found);
  return found;
}

KnownFiles::Found find_out(const std::string& text) {
  if (auto found = known_files().find(text)) return *std::move(found);
  if (auto listed = known_files().find_listed(text))
    return {.version = listed_version(text, *std::move(listed)), .head = {}};
  return find_out_now(text);
}

std::string with_slash(std::string text) {
  if (!text.ends_with('/')) text += '/';
  return text;
}

DirectoryEntry entry_of(std::string path, const Listed& listed) {
  FileVersion version;
  version.size = listed.size;
  version.etag = listed.etag.empty() ? listed.content_id : listed.etag;
  const bool is_folder = path.ends_with('/');
  return {.path = path,
          .is_directory = is_folder,
          .size = listed.size,
          .modified_ns = is_folder ? 0 : version.number(),
          .identity = identity(path)};
}

// Lists a prefix once, for all questions that opening a source asks of it.
KnownFiles::Below below_prefix(const std::string& text) {
  const std::string folder = with_slash(text);
  if (auto below = known_files().find_below(folder)) return *std::move(below);
  const Url url = parse_url(folder);
  std::vector<DirectoryEntry> files;
  for (Listed& listed : list_objects(url, url.path)) {
    if (listed.key == url.path) continue;  // the folder's own object
    std::string path = folder + listed.key.substr(url.path.size());
    files.push_back(entry_of(path, listed));
    if (!files.back().is_directory && listed.content_id.empty())
      known_files().note_listed(path, {.size = listed.size, .etag = std::move(listed.etag), .last_modified = {}});
  }
  return known_files().note_below(folder, std::move(files));
}

std::vector<DirectoryEntry> list_pattern(const std::string& text) {
  std::vector<std::filesystem::path> paths;
  for (std::string& url : expand_shard_pattern(text)) paths.emplace_back(std::move(url));
  will_open(paths);
  std::vector<DirectoryEntry> entries;
  for (const std::filesystem::path& path : paths) {
    const KnownFiles::Found found = find_out_now(path.string());
    entries.push_back({.path = path,
                       .size = found.version.size,
                       .modified_ns = found.version.number(),
                       .identity = identity(path)});
  }
  return entries;
}

[[noreturn]] void refuse_listing(const std::string& text) {
  throw DataError(ErrorCode::kUnsupported, "HTTP has no listing of folders", {.source = text},
                  "name a file, shards such as train-{000..099}.tar, or a prefix of a store: s3://BUCKET/PREFIX/");
}

bool names_whole_store(const Url& url) {
  return url.path.empty() || (url.scheme == Scheme::kHf && hub_path(url.path)->file.empty());
}

PathKind kind_of_prefix(const std::string& text) {
  return below_prefix(text).files.empty() ? PathKind::kMissing : PathKind::kDirectory;
}

// Returns what a path is if a folder above it was listed a moment ago.
std::optional<PathKind> kind_as_listed(const std::string& text) {
  if (!known_files().find_below(text.substr(0, text.rfind('/') + 1))) return std::nullopt;
  const auto below = known_files().find_below(text);
  if (!below) return std::nullopt;
  if (!below->files.empty() && below->files.front().path.native() == text) return PathKind::kFile;
  return files_with(text + "/", below->files).empty() ? PathKind::kMissing : PathKind::kDirectory;
}

}  // namespace

void forget_version(const std::string& url) { known_files().forget(url); }

void note_head(const FileVersion& version, std::span<const std::byte> head) {
  known_files().note(version.asked.url, {.version = version, .head = {head.begin(), head.end()}});
}

Hold::Hold() { known_files().hold(); }
Hold::~Hold() { known_files().release(); }

std::string library() { return curl_version_info(CURLVERSION_NOW)->version; }

Counters counters() noexcept {
  const HttpCounters& now = http_counters();
  return {.requests = now.requests.load(),
          .retries = now.retries.load(),
          .bytes = now.bytes.load(),
          .held_bytes = held_bytes(),
          .cached_bytes = cached_bytes(),
          .latency_seconds = now.latency_seconds.load()};
}

std::shared_ptr<Handle> open(const std::filesystem::path& url) {
  const std::string text = url.string();
  if (auto ahead = known_files().take_ahead(text)) return std::make_shared<OpenFile>(std::move(ahead));
  if (text.ends_with('/') || is_shard_pattern(text)) {
    parse_url(text);
    throw DataError(ErrorCode::kInvalidArgument, "names several files, not one", {.source = text}, "name a file");
  }
  KnownFiles::Found found = find_out(text);
  return std::make_shared<OpenFile>(std::make_shared<RemoteFile>(std::move(found.version), std::move(found.head)));
}

PathKind kind(const std::filesystem::path& path) {
  const std::string text = path.string();
  const Url url = parse_url(text);
  if (is_below_shard_pattern(text)) return PathKind::kMissing;
  if (is_shard_pattern(text)) return PathKind::kDirectory;
  const bool folder = text.ends_with('/');
  if (url.in_store() && (folder || names_whole_store(url))) return kind_of_prefix(text);
  if (folder && url.path != "/") refuse_listing(text);
  if (url.in_store()) {
    if (const auto kind = kind_as_listed(text)) return *kind;
  }
  try {
    find_out_now(text);
    return PathKind::kFile;
  } catch (const DataError& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
  }
  return url.in_store() ? kind_of_prefix(text) : PathKind::kMissing;
}

std::vector<DirectoryEntry> list(const std::filesystem::path& path) {
  const std::string text = path.string();
  if (is_shard_pattern(text)) return list_pattern(text);
  if (!parse_url(text).in_store()) refuse_listing(text);
  const KnownFiles::Below below = below_prefix(text);
  const std::size_t prefix = with_slash(text).size();
  std::vector<DirectoryEntry> entries;
  for (const DirectoryEntry& file : below.files) {
    const std::string& url = file.path.native();
    const std::size_t slash = url.find('/', prefix);
    if (slash == std::string::npos) {
      entries.push_back(file);
    } else if (entries.empty() || entries.back().path.native() != url.substr(0, slash)) {
      std::string inner = url.substr(0, slash);
      const FileIdentity id = identity(inner);
      entries.push_back({.path = std::move(inner), .is_directory = true, .identity = id});
    }
  }
  std::ranges::sort(entries, {},
                    [](const DirectoryEntry& entry) -> const std::string& { return entry.path.native(); });
  return entries;
}

std::vector<DirectoryEntry> list_below(const std::filesystem::path& path) {
  const std::string text = path.string();
  if (is_shard_pattern(text)) return list_pattern(text);
  if (!parse_url(text).in_store()) refuse_listing(text);
  const KnownFiles::Below below = below_prefix(text);
  return {below.files.begin(), below.files.end()};
}

FileIdentity identity(const std::filesystem::path& url) {
  return {.device = ~std::uint64_t{0}, .inode = xxh3(std::string_view(url.native()))};
}

void will_open(std::span<const std::filesystem::path> urls) {
  std::deque<std::pair<std::string, Question>> questions;
  for (const std::filesystem::path& url : urls) {
    const std::string text = url.string();
    const auto listed = known_files().find_listed(text);
    if (known_files().find(text) || (listed && known_files().still_holds(listed->when))) continue;
    questions.emplace_back(text, Question(text));
  }
  for (; !questions.empty(); questions.pop_front()) {
    const std::string& text = questions.front().first;
    try {
      KnownFiles::Found found = questions.front().second.answer();
      const FileVersion& version = found.version;
      known_files().note_listed(
          text, {.size = version.size, .etag = version.etag, .last_modified = version.last_modified});
      known_files().note(text, std::move(found));
    } catch (const DataError&) {  // File::open() says it again
    }
  }
}

void forget_whole() noexcept { known_files().drop_ahead(); }

void will_read_whole(const std::filesystem::path& url, std::uint64_t size) {
  const std::string text = url.string();
  auto listed = known_files().find_listed(text);
  if (!listed || listed->size != size || size == 0) return;
  auto file = std::make_shared<RemoteFile>(listed_version(text, *std::move(listed)), std::vector<std::byte>());
  const ByteExtent whole{.offset = 0, .size = size};
  file->will_read(std::span(&whole, 1));
  known_files().put_ahead(text, std::move(file));
}

}  // namespace headrace::remote
