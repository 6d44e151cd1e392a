// All positions, several times over; each time is a pass of its own.
#pragma once

#include <cstdint>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class RepeatIndex final : public IndexStage {
 public:
  // ConfigError where there would be more positions than can be counted.
  RepeatIndex(std::uint64_t before, std::uint64_t times);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* /*memory*/) const override;

 private:
  std::uint64_t before_, times_;
};

}  // namespace headrace
