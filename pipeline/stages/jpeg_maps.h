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

// Thread-safe, without locks. Takes an eighth of the budget at most, or a sixteenth of the machine's memory where
// that has no limit. Making a map takes longer than it saves at once: what does not fit gets none.
class JpegMaps {
 public:
  // The budget must outlive it.
  JpegMaps(std::uint64_t records, MemoryBudget& budget);
  ~JpegMaps();
  JpegMaps(const JpegMaps&) = delete;
  JpegMaps& operator=(const JpegMaps&) = delete;

  // The map of a record's bytes, or null where they have none: also where there is no room, and where they are not
  // those that the record had at first.
  const JpegMap* find(std::uint64_t record, std::span<const std::byte> encoded, ImageDecoder& decoder);

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  bool charge(std::uint64_t bytes) noexcept;
  const JpegMap* keep(std::uint64_t record, std::unique_ptr<const JpegMap> map) noexcept;

  MemoryBudget& budget_;
  std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> bytes_{0};  // charged to the budget
  std::atomic<bool> full_{false};
  std::vector<std::atomic<const JpegMap*>> maps_;  // by record; empty: there is no room
};

}  // namespace headrace
