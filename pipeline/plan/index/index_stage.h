// A stage of a plan's index: maps its positions to positions of the preceding stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace headrace {

// A record, and the zero-based pass number of its stage of the plan over the whole run: the pass keys shuffles and
// random operations, so that a repeated record gets new random numbers. Between two stages `record` is a position.
struct Located {
  std::uint64_t record = 0;
  std::uint64_t pass = 0;
  bool operator==(const Located&) const = default;
};

// The origin of a position of a combined stream.
struct Share {
  std::size_t part = 0;
  std::uint64_t position = 0;  // in the part's epoch; beyond its end: the part has restarted
};

// A stage's memory for one walk through it, such as the permutation of the latest pass.
class IndexMemory {
 public:
  virtual ~IndexMemory() = default;
  // Writes the numbers that enumerate() stages gave to the position that was located last, each at its place.
  virtual void write_numbers(std::uint64_t* /*numbers*/) const {}
};

// A stateless O(1) function. Immutable and thread-safe, but a memory is used by one thread at a time.
class IndexStage {
 public:
  virtual ~IndexStage() = default;

  // Returns the number of positions in an epoch.
  virtual std::uint64_t size() const noexcept = 0;
  // Maps `at.record`, a position of this stage, to a position of the preceding stage. `memory` is the result of
  // create_memory(). REQUIRES: `at.record` < size().
  virtual Located locate(const Located& at, IndexMemory* memory) const = 0;
  // For a stream, whose length is unknown: bound the preceding stage's positions for positions up to `position`,
  // and from it on; unchanged if the order is kept.
  virtual std::uint64_t last_before(std::uint64_t position) const { return kept_position(position); }
  virtual std::uint64_t first_before(std::uint64_t position) const { return kept_position(position); }
  // Returns the position of the preceding stage that must exist for `position` to exist.
  virtual std::uint64_t needed_before(std::uint64_t position) const { return kept_position(position); }
  // Returns null if the stage remembers nothing.
  virtual std::unique_ptr<IndexMemory> create_memory() const { return nullptr; }

 private:
  std::uint64_t kept_position(std::uint64_t position) const {
    return locate({.record = position}, nullptr).record;
  }
};

using IndexStagePtr = std::shared_ptr<const IndexStage>;

}  // namespace headrace
