// One stage of a plan's index: which position of the stage before it stands at a position of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace headrace {

// Which record, and the how manyth time over the whole run that its stage of the plan starts again: the pass
// keys shuffles and random operations, so that a repeated record gets new random numbers. Between two stages
// `record` is a position.
struct Located {
  std::uint64_t record = 0;
  std::uint64_t pass = 0;
  bool operator==(const Located&) const = default;
};

// Where a position of a combined stream comes from.
struct Share {
  std::size_t part = 0;
  std::uint64_t position = 0;  // in the part's epoch; beyond its end: the part has started again
};

// What a stage remembers for whoever walks through it, such as the permutation of the pass it was in.
class IndexMemory {
 public:
  virtual ~IndexMemory() = default;
};

// A function, O(1) and without state. Immutable and thread-safe, but a memory is one thread's at a time.
class IndexStage {
 public:
  virtual ~IndexStage() = default;

  // Positions in an epoch.
  virtual std::uint64_t size() const noexcept = 0;
  // `at.record` < size() is a position of this stage; the result's is one of the stage before. `memory` is what
  // create_memory() gave.
  virtual Located locate(const Located& at, IndexMemory* memory) const = 0;
  // Of a stream, whose length is unknown: which positions of the stage before those up to `position`, and those
  // from it on, may stand at; as they are where the order is kept.
  virtual std::uint64_t last_before(std::uint64_t position) const { return kept_position(position); }
  virtual std::uint64_t first_before(std::uint64_t position) const { return kept_position(position); }
  // The position of the stage before that must be there for `position` to be.
  virtual std::uint64_t needed_before(std::uint64_t position) const { return kept_position(position); }
  // Null: it remembers nothing.
  virtual std::unique_ptr<IndexMemory> create_memory() const { return nullptr; }

 private:
  std::uint64_t kept_position(std::uint64_t position) const {
    return locate({.record = position}, nullptr).record;
  }
};

using IndexStagePtr = std::shared_ptr<const IndexStage>;

}  // namespace headrace
