// The fetch cache of the process (remote.h): the files of its folder, who fetches what, and a thread that stores
// pieces and waits for those of other processes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/piece_file.h"

namespace headrace::remote {

// What the cache's thread works for. Called by that thread, which holds no lock; does not throw.
class PieceUser {
 public:
  virtual ~PieceUser() = default;
  virtual void store_piece() noexcept = 0;
  // Checks a pending piece again. Returns whether it is done: watch() ends.
  virtual bool look_again() noexcept = 0;
};

// Where a piece is in the cache's files.
struct PiecePlace {
  PieceFile* file = nullptr;
  PieceSlot* slot = nullptr;
};

// Thread-safe. A failing disk costs only the piece, with one warning.
class FetchCache {
 public:
  // Returns null if there is none. Throws what set_fetch_cache() throws, for what the environment says. A forked
  // process opens its own, since threads do not survive fork(). Caches are never destroyed: threads may use them
  // while the process ends.
  static FetchCache* of_process();

  explicit FetchCache(const FetchCacheOptions& options);

  // Returns the status without claiming: never kClaimed.
  PieceStatus look(const PieceName& name) noexcept;
  // Claims a free piece: never returns kFree. A claim is renewed until the piece is stored or given up.
  PieceStatus claim(const PieceName& name, PiecePlace& place) noexcept;
  // Reads a stored piece. Returns false if it is damaged, which frees it.
  bool load(const PieceName& name, const PiecePlace& place, std::span<std::byte> into) noexcept;
  // Stores a claimed piece and ends the claim. Returns whether it is stored.
  bool store(const PieceName& name, const PiecePlace& place, std::span<const std::byte> bytes) noexcept;
  void give_up(const PiecePlace& place) noexcept;

  // Lets the thread call store_piece(). Returns false if too much waits for the disk.
  bool store_soon(std::shared_ptr<PieceUser> user);
  // Lets the thread call look_again() until it is satisfied or gone.
  void watch(const std::shared_ptr<PieceUser>& user);

 private:
  using Time = std::chrono::steady_clock::time_point;

  // By mutex_.
  PiecePlace find(const PieceName& name) noexcept;
  PieceFile* file_with_room(std::uint64_t size) noexcept;
  bool find_room(const PieceName& name, PiecePlace& place) noexcept;
  bool make_room() noexcept;
  void scan();
  void remove_unused(std::uint64_t wanted);
  void forget(const PieceFile& file);
  void wake();

  void run() noexcept;
  void warn_once(const std::exception& error) noexcept;

  const std::filesystem::path folder_;
  const std::uint64_t budget_, file_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // By mutex_.
  std::vector<std::unique_ptr<PieceFile>> files_, gone_;  // gone: removed, perhaps still read
  std::map<PieceSlot*, PieceFile*> claims_;
  std::deque<std::shared_ptr<PieceUser>> stores_;
  std::vector<std::weak_ptr<PieceUser>> watched_;
  Time full_until_{}, renewed_{};
  bool runs_ = false, told_ = false;
};

// Returns the bytes that were read from fetch caches.
std::uint64_t cached_bytes() noexcept;

}  // namespace headrace::remote
