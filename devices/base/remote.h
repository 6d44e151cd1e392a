// Files behind URLs. They are read through file.h like those of the operating system;
// this header holds what only they have. All requests go through libcurl; a build without it refuses URLs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/file_entry.h"

namespace HEADRACE_API headrace {

// The schemes of stores, whose prefixes can be listed.
inline constexpr std::array<std::string_view, 4> kStoreSchemes = {"s3://", "gs://", "az://", "hf://"};

inline bool is_store_url(std::string_view text) noexcept {
  return std::ranges::any_of(kStoreSchemes, [&](std::string_view scheme) { return text.starts_with(scheme); });
}
inline bool is_http_url(std::string_view text) noexcept {
  return text.starts_with("http://") || text.starts_with("https://");
}
// Returns whether the path starts with a scheme that is read.
bool is_url(const std::filesystem::path& path) noexcept;

namespace remote {

// The pauses and limits of retries: a refusal that may pass (5xx, 429, a reset, a stall, a short or wrong answer)
// is answered by another request after a growing, random pause, until nothing has arrived for `deadline`.
struct Timing {
  std::chrono::milliseconds first_pause{100}, max_pause{5'000};
  std::chrono::milliseconds stall{10'000};  // without a byte, after which a request counts as failed
  std::chrono::milliseconds deadline{60'000};
};
// Sets it for all later requests of the process.
void set_timing(const Timing& timing);

// Counters of the process since its start.
struct Counters {
  std::uint64_t requests = 0;  // sent, retries among them
  std::uint64_t retries = 0;
  std::uint64_t bytes = 0;         // of answers' bodies
  std::uint64_t held_bytes = 0;    // now in memory, fetched or being fetched
  std::uint64_t cached_bytes = 0;  // read from the fetch cache
  double latency_seconds = 0;      // from a request to the first byte of its answer, recently
};
Counters counters() noexcept;

// Returns one sentence on the library used, such as "libcurl 7.88.1"; empty if built without remote data.
std::string library();

// A folder on a local disk that keeps what is fetched, for all processes that name it and for later runs. It is
// filled once: what is in it is thrown out only for another run's data, and only if no process uses it. Every read
// of it is checked; what is damaged, and what no longer fits, is fetched again.
struct FetchCacheOptions {
  std::filesystem::path folder = {};  // created if missing
  std::uint64_t budget_bytes = 0;     // of all files in it
};
// Sets it for files that are opened from now on, instead of what the environment says (HEADRACE_FETCH_CACHE,
// HEADRACE_FETCH_BUDGET); without a folder there is none. Throws ConfigError for a budget that is too small and a
// folder that is not local; DataError for one that cannot be written.
void set_fetch_cache(const FetchCacheOptions& options);

// Lets fetches ahead of reads hold so many more bytes while it lives. Without any the process holds a few MiB.
class Window {
 public:
  Window() = default;
  explicit Window(std::uint64_t bytes);
  ~Window();
  Window(Window&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  Window& operator=(Window&&) = delete;

 private:
  std::uint64_t bytes_ = 0;
};

// Keeps what is learned about URLs valid while it lives: sizes, first bytes, listings. For opening a source,
// which asks for them several times.
class Hold {
 public:
  Hold();
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

// Lets files that this thread opens while it lives fetch little beyond what is read of them: a look at their
// beginning, after which they are closed.
class Look {
 public:
  Look() noexcept;
  ~Look();
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;
};

// Marks a thread that may be left alone when it hangs: a signal need not end the process because it waits.
class AbandonableThread {
 public:
  AbandonableThread() noexcept;
};

// Lets the waits of this thread call `look` about twenty times a second, which may throw. Returns the previous
// one. REQUIRES: `look` outlives its use; null: none.
const std::function<void()>* set_wait_poll(const std::function<void()>* look) noexcept;
// Calls this thread's, if there is one.
void poll_while_waiting();

// A file as it was found, opened for reading by position. Thread-safe.
class Handle {
 public:
  virtual ~Handle() = default;
  virtual std::uint64_t size() const noexcept = 0;
  // Returns a number that changes with the file's ETag or, without one, its time of change.
  virtual std::uint64_t version() const noexcept = 0;
  // Returns whether the server says one of these.
  virtual bool is_versioned() const noexcept = 0;
  // Returns the URL that requests are sent to: of s3://, with its store.
  virtual const std::string& requested() const noexcept = 0;
  // Fills `into`, to the end of the file at most; returns how many bytes. Blocks. Throws DataError.
  virtual std::size_t read_some(std::uint64_t offset, std::span<std::byte> into) = 0;
  virtual void will_read(std::span<const ByteExtent> extents) = 0;
  virtual void will_read_from(std::uint64_t offset, std::uint64_t bytes_before) = 0;
};

// The functions that file.h calls for URLs. Each throws DataError.
std::shared_ptr<Handle> open(const std::filesystem::path& url);
PathKind kind(const std::filesystem::path& url);
std::vector<DirectoryEntry> list(const std::filesystem::path& url);
FileIdentity identity(const std::filesystem::path& url);

// Returns all files below a folder; sizes and versions (as modified_ns) are those of the listing. A directory
// among them, whose path ends in '/', is an object that stands for a folder.
std::vector<DirectoryEntry> list_below(const std::filesystem::path& url);
// Finds out about many files at once: those that File::open() will be asked for. What is missing shows there.
void will_open(std::span<const std::filesystem::path> urls);
// Starts to fetch a whole file of `size` bytes, for the next File::open() of it.
void will_read_whole(const std::filesystem::path& url, std::uint64_t size);
// Forgets all files that were fetched so and not opened.
void forget_whole() noexcept;
// Removes an object of a store; does nothing if there is none. Throws ConfigError for other URLs.
void remove(const std::filesystem::path& url);

// An object of a store that is being written. Not thread-safe. Throws DataError.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  virtual std::uint64_t size() const noexcept = 0;
  // Lets it appear, whole: one that was there is replaced. REQUIRES: called once, last.
  virtual void commit() = 0;
};
// Throws ConfigError for a URL that nothing can be written to.
std::unique_ptr<Upload> create(const std::filesystem::path& url);

}  // namespace remote
}  // namespace headrace
