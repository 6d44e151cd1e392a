// A combination of datasets as one index stage, the first of a plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/index/interleaving.h"
#include "headrace/pipeline/plan/index/mixing.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// Concatenates streams.
class Concatenation {
 public:
  explicit Concatenation(const std::vector<std::uint64_t>& sizes) {
    std::uint64_t end = 0;
    for (std::uint64_t size : sizes) ends_.push_back(end += size);
  }

  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  // O(log of the parts). REQUIRES: `position` < size().
  Share locate(std::uint64_t position) const noexcept {
    const auto part =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
    return {.part = part, .position = part == 0 ? position : position - ends_[part - 1]};
  }

 private:
  std::vector<std::uint64_t> ends_;
};

// Groups positions; each group is one record of several rows.
class Unbatching {
 public:
  // REQUIRES: `rows` > 0, `size` is a multiple of `rows`.
  Unbatching(std::uint64_t rows, std::uint64_t size) : rows_(rows), size_(size) {}

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t rows() const noexcept { return rows_; }
  // Returns the place of the record that holds the row. REQUIRES: `position` < size().
  Share locate(std::uint64_t position) const noexcept { return {.part = 0, .position = position / rows_}; }

 private:
  std::uint64_t rows_, size_;
};

class CombinationIndex final : public IndexStage {
 public:
  // `seed` is the loader's. Throws ConfigError if a mix cannot be made.
  CombinationIndex(const Combination& combination, std::uint64_t seed);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* memory) const override;
  std::unique_ptr<IndexMemory> create_memory() const override;

 private:
  struct Part {
    IndexMap map;
    std::uint64_t first_record = 0;
    std::uint64_t rounds = 1;  // passes over the part within an epoch
  };
  struct Memory final : IndexMemory {
    void write_numbers(std::uint64_t* numbers) const override { cursors[last].write_numbers(numbers); }

    std::vector<IndexCursor> cursors;  // one per part
    std::size_t last = 0;              // the part of the position that was located last
    MixedStretch stretch;
  };

  void make_mix(const MixOptions& options, const std::vector<std::uint64_t>& sizes, std::uint64_t seed);
  Share share_at(const Located& at, Memory& memory) const;

  std::vector<Part> parts_;
  std::variant<Concatenation, Interleaving, Mixing, Unbatching> how_;
};

}  // namespace headrace
