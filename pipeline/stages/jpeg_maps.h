// The maps of a source's JPEGs, each made when its image is first used and kept while there is room.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/engine/memory_budget.h"

namespace headrace {

// Thread-safe, without locks. Takes an eighth of the budget, or a sixteenth of the machine's memory where that has
// no limit; then maps are made for one use, which still pays.
class JpegMaps {
 public:
  // The budget must outlive it.
  JpegMaps(std::uint64_t records, MemoryBudget& budget);
  ~JpegMaps();
  JpegMaps(const JpegMaps&) = delete;
  JpegMaps& operator=(const JpegMaps&) = delete;

  // The map of a record's bytes, or null where they have none. It may be put into `made`, for the caller to keep
  // as long as it is used. A file that was written anew meanwhile gets a new map for each use.
  const JpegMap* find(std::uint64_t record, std::span<const std::byte> encoded, ImageDecoder& decoder,
                      std::unique_ptr<const JpegMap>& made);

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  bool charge(std::uint64_t bytes) noexcept;
  void keep(std::uint64_t record, std::unique_ptr<const JpegMap>& map) noexcept;

  MemoryBudget& budget_;
  std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> bytes_{0};            // charged to the budget
  std::vector<std::atomic<const JpegMap*>> maps_;  // by record; empty: there is no room for one
};

}  // namespace headrace
