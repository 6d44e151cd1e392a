// A combination of datasets as one index stage: the first of a plan's.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "headrace/pipeline/plan/index/concatenation.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/interleaving.h"
#include "headrace/pipeline/plan/index/mixing.h"
#include "headrace/pipeline/plan/index/unbatching.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

class CombinationIndex final : public IndexStage {
 public:
  // `seed` is the loader's. Throws ConfigError where a mix cannot be made.
  CombinationIndex(const Combination& combination, std::uint64_t seed);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* memory) const override;
  std::unique_ptr<IndexMemory> create_memory() const override;

 private:
  struct Part {
    IndexMap map;
    std::uint64_t first_record = 0;
    std::uint64_t rounds = 1;  // times it starts again within an epoch
  };
  struct Memory final : IndexMemory {
    std::vector<IndexCursor> cursors;  // one a part
    MixedStretch stretch;
  };

  void make_mix(const MixOptions& options, const std::vector<std::uint64_t>& sizes, std::uint64_t seed);
  Share share_at(const Located& at, Memory& memory) const;

  std::vector<Part> parts_;
  std::variant<Concatenation, Interleaving, Mixing, Unbatching> how_;
};

}  // namespace headrace
