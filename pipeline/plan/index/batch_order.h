// batch(), stages on its batches, and unbatch(), as one index stage: whole batches of records change places.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// Returns the number of batches of `records` records.
std::uint64_t count_batches(std::uint64_t records, const BatchOptions& batch);

// Returns the index of the stages after a batch(): (epoch, step) -> (batch, pass).
IndexMap batch_map(std::uint64_t batches, const std::vector<Stage>& stages, std::uint64_t seed);

// Returns the examples of an epoch of such batches; if they are chosen after a shuffle, of the first epoch. Looks
// at each batch's number if one of them is smaller.
std::uint64_t count_examples(std::uint64_t records, const BatchOptions& batch, const std::vector<Stage>& stages,
                             std::uint64_t seed);

// Returns whether a smaller last batch may stand between others, so that each pass looks at all batches' numbers.
bool may_scan(const BatchOrder& order);

class BatchOrderIndex final : public IndexStage {
 public:
  // `before` is the number of positions of the preceding stage. Throws ConfigError if the smaller last batch is
  // among the chosen ones in some epochs only, so that they differ in length.
  BatchOrderIndex(std::uint64_t before, const BatchOrder& order, std::uint64_t seed);

  std::uint64_t size() const noexcept override { return size_; }
  // If batches are shuffled or repeated and one is smaller, each new pass looks at the numbers of all batches.
  Located locate(const Located& at, IndexMemory* memory) const override;
  std::uint64_t last_before(std::uint64_t position) const override { return kept(position); }
  std::uint64_t first_before(std::uint64_t position) const override { return kept(position); }
  std::uint64_t needed_before(std::uint64_t position) const override;
  std::unique_ptr<IndexMemory> create_memory() const override;

 private:
  struct Memory final : IndexMemory {
    explicit Memory(const IndexMap& batches) : cursor(batches) {}

    IndexCursor cursor;
    std::uint64_t pass = ~std::uint64_t{0};  // of `ends`; none yet
    std::vector<std::uint64_t> ends;         // of the smaller batches, in positions of this stage
  };

  void find_smaller(std::uint64_t pass, Memory& memory) const;
  // Returns the preceding position of a stream, where batches keep their order.
  std::uint64_t kept(std::uint64_t position) const;

  std::uint64_t global_;
  bool drops_;
  IndexMap batches_;
  std::uint64_t last_;  // number of the last batch
  std::uint64_t rest_;  // its examples if they are fewer and it may be followed by others; else 0
  bool shuffled_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
