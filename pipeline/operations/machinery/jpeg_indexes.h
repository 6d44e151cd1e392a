// Cached knowledge of a source's JPEGs: which are good, and their indexes. Each is found when its image is first
// used, and kept while there is room.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"

namespace headrace {

// Knowledge of one image. `good`: a window may be decoded without checking the data below it.
struct KnownJpeg {
  const JpegIndex* index = nullptr;  // of a good image; valid for as long as the JpegIndexes it came from
  bool good = false;
};

// Thread-safe, lock-free. Takes at most an eighth of the budget, or a sixteenth of the machine's memory if the
// budget has no limit. If an index does not fit, only the fact that the image is good is kept; if there is no room
// for that either, nothing is kept of any image.
class JpegIndexes {
 public:
  // REQUIRES: the budget outlives it.
  JpegIndexes(std::uint64_t records, MemoryBudget& budget);
  ~JpegIndexes();
  JpegIndexes(const JpegIndexes&) = delete;
  JpegIndexes& operator=(const JpegIndexes&) = delete;

  // Returns what is known of a record's bytes; nothing if they differ from the record's first bytes.
  KnownJpeg find(std::uint64_t record, std::span<const std::byte> encoded) const noexcept;
  // Keeps the index of a record's bytes, or if there is no room that they are good.
  void keep(std::uint64_t record, std::unique_ptr<const JpegIndex> index) noexcept;
  // Keeps that a record's bytes, which have no index, were decoded to their end without an error.
  void keep_good(std::uint64_t record, std::span<const std::byte> encoded) noexcept;
  // Returns whether no further index will be kept.
  bool is_full() const noexcept { return kept_.empty() || full_.load(std::memory_order_relaxed); }

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  // The entry of a record: 0, the address of its index, or a mark with kNoIndex set.
  using Kept = std::uint64_t;
  static constexpr Kept kNoIndex = 1;  // no index's address is odd

  bool charge(std::uint64_t bytes) noexcept;
  bool put(std::uint64_t record, Kept fresh) noexcept;
  static const JpegIndex* index_of(Kept kept) noexcept;
  static Kept good_mark(std::uint64_t content) noexcept;

  MemoryBudget& budget_;
  std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> bytes_{0};  // charged to the budget
  std::atomic<bool> full_{false};
  std::vector<std::atomic<Kept>> kept_;  // by record; empty: there is no room
};

}  // namespace headrace
