// batch(), stages on its batches, and unbatch(), as one index stage: whole batches of records change places.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/pipeline/plan/index/batch_rows.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// Returns the index of the stages after a batch(): (epoch, step) -> (batch, pass).
IndexMap batch_map(std::uint64_t batches, const std::vector<Stage>& stages, std::uint64_t seed);

// Returns the examples of an epoch of such batches; if they are chosen after a shuffle, of the first epoch. Looks
// at each batch's number if one of them is smaller.
std::uint64_t count_examples(const BatchRows& rows, const std::vector<Stage>& stages, std::uint64_t seed);

// Returns whether a smaller batch may stand between others, so that each pass looks at all batches' numbers.
bool may_scan(const BatchOrder& order);

class BatchOrderIndex final : public IndexStage {
 public:
  // `before` is the number of positions of the preceding stage. Throws ConfigError if a smaller batch is among the
  // chosen ones in some epochs only, so that they differ in length.
  BatchOrderIndex(std::uint64_t before, const BatchOrder& order, std::uint64_t seed);

  std::uint64_t size() const noexcept override { return size_; }
  // If batches are shuffled, repeated or combined and one is smaller, each new pass looks at the numbers of all.
  Located locate(const Located& at, IndexMemory* memory) const override;
  std::uint64_t last_before(std::uint64_t position) const override { return kept(position); }
  std::uint64_t first_before(std::uint64_t position) const override { return kept(position); }
  std::uint64_t needed_before(std::uint64_t position) const override;
  std::unique_ptr<IndexMemory> create_memory() const override;

 private:
  // A smaller batch.
  struct Smaller {
    std::uint64_t end = 0;      // in positions of this stage
    std::uint64_t missing = 0;  // examples that it and those before it lack
  };
  struct Memory final : IndexMemory {
    explicit Memory(const IndexMap& batches) : cursor(batches) {}

    IndexCursor cursor;
    std::uint64_t pass = ~std::uint64_t{0};  // of `smaller`; none yet
    std::vector<Smaller> smaller;
  };

  BatchOrderIndex(BatchRows rows, const BatchOrder& order, const std::vector<Stage>& stages, std::uint64_t seed);

  std::string describe_smaller() const;
  void find_smaller(std::uint64_t pass, Memory& memory) const;
  // Returns the preceding position of a stream, where batches keep their order.
  std::uint64_t kept(std::uint64_t position) const;

  BatchRows rows_;
  std::uint64_t full_;  // examples of a full batch
  bool drops_;
  IndexMap batches_;
  bool uneven_;  // whether a smaller batch may be followed by others
  bool shuffled_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
