// A remote file, opened for reading by position, and its ranges: being fetched or there.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/attempts.h"
#include "headrace/devices/base/remote/fetch_cache.h"
#include "headrace/devices/base/remote/http_client.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {

// One range of a remote file, being fetched or there, and the memory of all of them.

// A file as it was found. Answers that are not of this version are refused.
struct FileVersion {
  Asked asked = {};
  std::string url = {};                            // of requests
  std::shared_ptr<const StoreAccess> access = {};  // null: plain HTTP
  std::uint64_t size = 0;
  std::string etag = {}, last_modified = {};  // as the server says; empty: unknown

  bool is_versioned() const noexcept { return !etag.empty() || !last_modified.empty(); }
  // Returns a number that changes with them.
  std::uint64_t number() const;
};

// Thread-safe. It is charged to the process's window (remote.h) as long as it has memory: from its request until
// it is gone, or lies in the fetch cache and is not read just now.
class FetchedRange final : public HttpCall, public PieceUser, public std::enable_shared_from_this<FetchedRange> {
 public:
  FetchedRange(std::shared_ptr<const FileVersion> file, std::uint64_t begin, std::uint64_t end)
      : file_(std::move(file)), begin_(begin), end_(end) {}
  // A piece of the fetch cache.
  FetchedRange(std::shared_ptr<const FileVersion> file, std::uint64_t begin, FetchCache& cache,
               const PieceName& piece)
      : file_(std::move(file)), begin_(begin), end_(begin + piece.size), cache_(&cache), piece_(piece) {}
  ~FetchedRange() override;

  std::uint64_t begin_offset() const noexcept { return begin_; }
  std::uint64_t end_offset() const noexcept { return end_; }
  std::uint64_t size() const noexcept { return end_ - begin_; }

  // Requests the range once, even beyond the window, unless the fetch cache has it. kNow also expedites a request
  // that was made earlier and not sent yet.
  void start(std::uint64_t due);
  // Sends it as soon as the window has room, after those that asked before.
  void start_when_there_is_room();
  // Waits for the bytes from `offset` on and copies them; starts the fetch if necessary. Returns false if the
  // fetch cache had them and they are damaged: another range will fetch them. Throws what made it fail. REQUIRES:
  // they are within the range.
  bool read(std::uint64_t offset, std::span<std::byte> into);
  // Returns whether the bytes before `offset` are there.
  bool has_until(std::uint64_t offset) const;
  // Returns whether the fetch cache has the bytes: they are not lost when the range is.
  bool is_cached() const;
  // Ends the fetch, unless someone reads it, or its request was sent and the fetch cache will keep the answer.
  void drop() noexcept;
  // Returns whether it failed so long ago that it is worth asking again: errors count for a second.
  bool is_stale() const;

  std::atomic<int> readers{0};  // in read(), or on their way there: not to be cancelled

  HttpRequest request() override;
  void begin(const HttpAnswer& answer) override;
  bool take(std::span<const std::byte> bytes) override;
  std::optional<std::chrono::nanoseconds> end(const HttpAnswer& answer) override;
  void store_piece() noexcept override;
  bool look_again() noexcept override;

 private:
  enum class State {
    kIdle,
    kFetching,  // requested, or answered
    kPending,   // another range or process is fetching the piece
    kCached     // in the fetch cache
  };
  enum class Use { kBody, kNone };  // what is done with the body of an attempt's answer

  std::uint64_t position() const noexcept { return begin_ + received_; }
  // By mutex_.
  void get_memory();
  bool begin_fetch(std::uint64_t due);
  bool load();
  void give_up_claim() noexcept;
  Asked asked_here() const;
  // Returns how the answer is not of the file's version; empty: it is.
  std::string difference(const HttpAnswer& answer) const;
  void look_at_part(const HttpAnswer& answer);
  void look_at_whole(const HttpAnswer& answer);
  void fail(Refusal error);

  const std::shared_ptr<const FileVersion> file_;
  const std::uint64_t begin_, end_;
  FetchCache* const cache_ = nullptr;
  const PieceName piece_ = {};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // By mutex_.
  State state_ = State::kIdle;
  PiecePlace place_;      // of the piece, once it was claimed
  bool claimed_ = false;  // and neither stored nor given up
  bool sent_ = false;
  std::uint64_t received_ = 0;
  Refusal error_;
  std::chrono::steady_clock::time_point failed_;
  std::shared_ptr<std::byte[]> bytes_;  // null: no memory; filled by the client's thread, or from the cache

  // By the client's thread: of the attempt.
  Retries retries_;
  Use use_ = Use::kNone;
  bool looked_ = false, complete_ = false;
  std::uint64_t skipped_ = 0, to_skip_ = 0;  // of a whole file, sent instead of a range
  std::string wrong_;                        // why the answer is not what was asked for
  Refusal refused_;                          // why no further attempt would help
};

// Of what is known of files (known_files.h), and defined in store.cpp: lets the next opening of a file ask the
// server anew, or begin with these first bytes.
void forget_version(const std::string& url);
void note_head(const FileVersion& version, std::span<const std::byte> head);

// Returns whether this thread has a Look.
bool is_looking() noexcept;
// Returns whether the window has room for so many more bytes.
bool has_room(std::uint64_t bytes);
// Returns the size of the window.
std::uint64_t window_bytes() noexcept;
std::uint64_t held_bytes() noexcept;

// A remote file read by position: ranges fetched ahead as announced, or as a reader goes through it in order.

// Thread-safe; shared by all who have the file open.
class RemoteFile {
 public:
  // `head`: the file's first bytes; empty: not known.
  RemoteFile(FileVersion version, std::vector<std::byte> head)
      : version_(std::make_shared<const FileVersion>(std::move(version))) {
    name_for_cache();
    if (is_looking()) looks_ = true;
    if (!head.empty()) head_ = std::make_shared<const std::vector<std::byte>>(std::move(head));
  }
  ~RemoteFile() {
    drop_all();
    go_forward(false);
  }

  const FileVersion& version() const noexcept { return *version_; }
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into);
  void will_read(std::span<const ByteExtent> extents);
  void will_read_from(std::uint64_t offset, std::uint64_t bytes_before);
  // Forgets what was fetched ahead, of all who have it open.
  void drop_all() noexcept;

 private:
  struct Entry {
    std::shared_ptr<FetchedRange> range;
    std::uint64_t needed = 0, used = 0;  // bytes; dropped once used
    bool streamed = false;
  };
  using Entries = std::map<std::uint64_t, Entry>;  // by their first byte

  using Bytes = std::vector<std::byte>;
  // A piece of the fetch cache: stored, pending, or free to be fetched.
  struct Piece {
    std::uint64_t begin = 0, end = 0;
    FetchCache* cache = nullptr;
    PieceName name = {};
    PieceStatus status = PieceStatus::kNoRoom;
  };

  // Returns the piece that holds the byte; std::nullopt: the fetch cache neither has nor takes it.
  std::optional<Piece> piece_at(std::uint64_t offset) const;
  Entry& add(const Piece& piece, std::uint64_t needed);
  std::vector<ByteExtent> without_pieces(std::vector<ByteExtent> extents,
                                         std::vector<std::shared_ptr<FetchedRange>>& added);
  Entries::iterator covering(std::uint64_t offset);
  // Returns the first bytes, which are fetched once a short read asks for some of them; null: they are not known.
  std::shared_ptr<const Bytes> head_for(std::uint64_t offset, std::size_t size);
  std::shared_ptr<FetchedRange> range_for(std::uint64_t offset, std::uint64_t size);
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t needed);
  bool goes_on(std::uint64_t offset) const noexcept;
  void go_forward(bool forward) noexcept;
  void stream_from(std::uint64_t offset, bool waits, std::uint64_t bytes_before);
  void drop_behind(std::uint64_t offset);
  void note_used(const std::shared_ptr<FetchedRange>& range, std::uint64_t bytes);

  void name_for_cache();

  const std::shared_ptr<const FileVersion> version_;
  PieceName named_ = {};  // seeds of its pieces' names; size: 0, if the fetch cache does not take them
  std::mutex mutex_;
  // By mutex_.
  std::shared_ptr<const Bytes> head_;
  Entries entries_;
  bool looks_ = false;                   // remote::Look
  std::array<std::uint64_t, 4> read_{};  // where the latest pieces begin that were read from the cache
  std::size_t latest_read_ = 0;
  std::uint64_t last_end_ = 0;    // of the latest read
  std::uint64_t stream_end_ = 0;  // of what was asked for ahead of reads in order
  std::uint64_t window_ = 0;      // bytes to have ahead of them
  bool forward_ = false;          // whether the latest read lay after the one before
};

}  // namespace headrace::remote
