// take() and skip(): the first positions, or those after them.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

struct RecordCount {
  std::uint64_t count = 0;

  void each_field(OptionVisitor& visit) { visit("count", count, "How many records, or batches after batch()."); }
};

constexpr StageTraits kTakesPart{.by_number = true, .keeps_order = true, .streams = true};

class TakeStage final : public OrderStage<RecordCount> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override { return kTakesPart; }
  Indexed index(const StageInput& before) const override {
    return {.positions = std::min(before.positions, options().count)};
  }
};

// The positions after the first few.
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

class SkipStage final : public OrderStage<RecordCount> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override { return kTakesPart; }
  Indexed index(const StageInput& before) const override {
    auto stage = std::make_shared<const SkipIndex>(before.positions, options().count);
    return {.positions = stage->size(), .stage = stage};
  }
};

constexpr const char* kTake = "take";
constexpr const char* kSkip = "skip";

}  // namespace

Dataset Dataset::take(std::uint64_t count) const {
  return Dataset(add_stage(plan_, std::make_shared<const TakeStage>(kTake, RecordCount{count})));
}

Dataset Dataset::skip(std::uint64_t count) const {
  return Dataset(add_stage(plan_, std::make_shared<const SkipStage>(kSkip, RecordCount{count})));
}

StageCall take_call() {
  return stage_call<RecordCount, [](const Dataset& data, RecordCount options) {
    return data.take(options.count);
  }>(kTake, {"count"});
}

StageCall skip_call() {
  return stage_call<RecordCount, [](const Dataset& data, RecordCount options) {
    return data.skip(options.count);
  }>(kSkip, {"count"});
}

}  // namespace headrace
