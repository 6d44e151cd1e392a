// What is known of a source's JPEGs: which are good, and the indexes of those. Each is found when its image is
// first used, and kept while there is room.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"

namespace headrace {

// Of one image. `good`: a window of it may be decoded without a look at what lies below.
struct KnownJpeg {
  const JpegIndex* index = nullptr;  // of a good image; valid for as long as this and the JpegIndexes it came from
  bool good = false;
  bool has_none = false;                       // a index cannot be made of it
  std::unique_ptr<const JpegIndex> made = {};  // the same index where nobody else keeps it

  // Makes the index, of an image that comes but once.
  static KnownJpeg of(std::span<const std::byte> encoded, ImageDecoder& decoder);
};

// Thread-safe, without locks. Takes an eighth of the budget at most, or a sixteenth of the machine's memory where
// that has no limit. Of an image whose index does not fit it is kept that it is good; where there is no room for
// that either nothing is known of any.
class JpegIndexes {
 public:
  // The budget must outlive it.
  JpegIndexes(std::uint64_t records, MemoryBudget& budget);
  ~JpegIndexes();
  JpegIndexes(const JpegIndexes&) = delete;
  JpegIndexes& operator=(const JpegIndexes&) = delete;

  // What is known of a record's bytes. Nothing where they are not those that the record had at first.
  KnownJpeg find(std::uint64_t record, std::span<const std::byte> encoded) const noexcept;
  // Makes the index of a record's bytes and keeps what that says of them.
  KnownJpeg make(std::uint64_t record, std::span<const std::byte> encoded, ImageDecoder& decoder);
  // Keeps that a record's bytes were decoded, read to their end, and nothing was wrong with them.
  void keep_good(std::uint64_t record, std::span<const std::byte> encoded) noexcept;
  // No index that is made from now on will be kept.
  bool is_full() const noexcept { return kept_.empty() || full_.load(std::memory_order_relaxed); }

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  // What is kept of a record: 0, the address of its index, or a mark with kNoIndex set.
  using Kept = std::uint64_t;
  static constexpr Kept kNoIndex = 1;  // no index's address is odd
  static constexpr Kept kNotIndexed = kNoIndex;

  bool charge(std::uint64_t bytes) noexcept;
  void keep(std::uint64_t record, KnownJpeg& known) noexcept;
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
