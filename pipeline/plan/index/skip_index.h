// The positions after the first few.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class SkipIndex final : public IndexStage {
 public:
  SkipIndex(std::uint64_t before, std::uint64_t count)
      : skipped_(std::min(before, count)), size_(before - skipped_) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = at.record + skipped_, .pass = at.pass};
  }

 private:
  std::uint64_t skipped_, size_;
};

}  // namespace headrace
