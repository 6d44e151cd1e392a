// What a filter keeps.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

class FilterIndex final : public IndexStage {
 public:
  // What the filter keeps is found now, if it was not before: that reads the source. Throws what Selection::kept()
  // does.
  explicit FilterIndex(const FilterStage& filter) : selection_(filter.selection), kept_(&selection_->kept()) {}

  std::uint64_t size() const noexcept override { return kept_->count(); }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = kept_->select(at.record), .pass = at.pass};
  }

 private:
  std::shared_ptr<const Selection> selection_;
  const BitSelect* kept_;  // the selection's
};

}  // namespace headrace
