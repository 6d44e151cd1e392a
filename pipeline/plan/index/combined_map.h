// A combination of datasets as one function: (pass, position) -> (record, pass).
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "headrace/pipeline/plan/index/concatenation.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/interleaving.h"
#include "headrace/pipeline/plan/index/mixing.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// Immutable.
class CombinedMap {
 public:
  // `seed` is the loader's. Throws ConfigError where a mix cannot be made.
  CombinedMap(const Combination& combination, std::uint64_t seed);

  // Positions in an epoch.
  std::uint64_t size() const noexcept;

 private:
  friend class CombinedCursor;
  struct Part {
    IndexMap map;
    std::uint64_t first_record = 0;
    std::uint64_t rounds = 1;  // times it starts anew within an epoch
  };
  // Positions in groups of `rows`, each group a record.
  struct Rows {
    std::uint64_t rows, size;
  };

  void make_mix(const MixOptions& options, const std::vector<std::uint64_t>& sizes, std::uint64_t seed);

  std::vector<Part> parts_;
  std::variant<Concatenation, Interleaving, Mixing, Rows> how_;
};

// One thread at a time.
class CombinedCursor {
 public:
  explicit CombinedCursor(const CombinedMap& map);

  // `position` < map.size().
  Located locate(std::uint64_t pass, std::uint64_t position);

 private:
  const CombinedMap* map_;
  std::vector<IndexCursor> cursors_;  // one a part
  MixedStretch stretch_;
};

}  // namespace headrace
