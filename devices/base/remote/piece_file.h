// One file of the fetch cache: pieces of remote files, found through a table that all processes map.
//
//   header       4096 bytes: PieceHeader
//   table        `slots` entries of 32 bytes, a hash table with linear probing
//   pieces       their bytes, one after another
//
// Numbers are those of this machine: a file that another kind of machine wrote is not recognised. Nothing is
// trusted: a place that lies outside the file, and bytes that do not have their checksum, are a piece that is not
// there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "headrace/devices/base/mapped_file.h"

namespace headrace::remote {

inline constexpr std::uint64_t kPieceBytes = std::uint64_t{128} << 10;

// Names a piece of one version of a remote file, by two independent hashes.
struct PieceName {
  std::uint64_t key = 0;    // not 0
  std::uint64_t check = 0;  // begins the checksum, so that no other piece of the same key is taken for it
  std::uint64_t size = 0;   // at most kPieceBytes
};

// What stands in the table, in shared memory: read and written by atomic_ref alone.
struct PieceSlot {
  std::uint64_t key;    // 0: an empty slot; set once
  std::uint64_t state;  // 0: free; 1: stored; otherwise the process that fetches it, and since when
  std::uint64_t place;  // offset << 20 | size; 0: none yet
  std::uint64_t checksum;
};

enum class PieceStatus {
  kStored,
  kPending,  // another range or process is fetching it
  kFree,     // claim() can claim it
  kClaimed,  // by this call: the caller fetches and stores it
  kNoRoom
};

// Thread-safe, and safe between processes.
class PieceFile {
 public:
  // Creates the file, of `bytes` once it is full. Throws DataError. REQUIRES: nobody else creates one in the
  // folder.
  static void create(const std::filesystem::path& path, std::uint64_t bytes);
  // Returns whether the file begins as one of a fetch cache does.
  static bool is_one(const std::filesystem::path& path);
  // Throws DataError if it cannot be read and written, or is no such file.
  explicit PieceFile(const std::filesystem::path& path);
  PieceFile(const PieceFile&) = delete;
  PieceFile& operator=(const PieceFile&) = delete;

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  std::uint64_t bytes() const noexcept { return end_; }  // once it is full
  // Returns whether it has room for a piece that is in no table yet.
  bool has_room(std::uint64_t size) const noexcept;
  // Marks it as used by this process, so that nobody removes it, and notes the time in the file's times. Returns
  // false if it is being removed.
  bool use() noexcept;

  PieceSlot* find(std::uint64_t key) const noexcept;
  // Returns the slot of a new key; null: there is no room, or not in the table, and has_room() for none from then
  // on.
  PieceSlot* add(const PieceName& name) noexcept;

  // Returns the status without claiming: never kClaimed.
  PieceStatus look(const PieceSlot& slot) const noexcept;
  // Claims a free piece: never returns kFree. A claim expires after a few seconds without renew().
  PieceStatus claim(PieceSlot& slot, std::uint64_t size) noexcept;
  void renew(PieceSlot& slot) noexcept;
  // Gives up a claim.
  void release(PieceSlot& slot) noexcept;
  // Frees a stored piece that is damaged.
  void discard(PieceSlot& slot) noexcept;

  // Stores a claimed piece. Throws DataError.
  void store(PieceSlot& slot, const PieceName& name, std::span<const std::byte> bytes);
  // Reads a stored piece. Returns false if it is damaged.
  bool load(const PieceSlot& slot, const PieceName& name, std::span<std::byte> into) const noexcept;
  // Lets the system read it ahead.
  void will_load(const PieceSlot& slot) const noexcept;

 private:
  std::uint64_t allocate(std::uint64_t size) noexcept;
  bool is_sound(std::uint64_t place, std::uint64_t size) const noexcept;

  MappedFile file_;
  std::uint64_t slots_ = 0, data_begin_ = 0, end_ = 0;
  std::atomic<bool> table_full_{false};
  std::atomic<std::uint32_t> noted_{0};  // when its use was noted, in seconds; 0: never
};

}  // namespace headrace::remote
