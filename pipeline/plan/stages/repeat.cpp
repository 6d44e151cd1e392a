// repeat(): all positions, several times over.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

struct Passes {
  std::int64_t times = 1;

  void each_field(OptionVisitor& visit) { visit("times", times, "How often an epoch has each record."); }
};

// All positions, several times over; each time is a separate pass.
class RepeatIndex final : public IndexStage {
 public:
  // Throws ConfigError if there would be more positions than can be counted.
  RepeatIndex(std::uint64_t before, std::uint64_t times);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* /*memory*/) const override;

 private:
  std::uint64_t before_, times_;
};

RepeatIndex::RepeatIndex(std::uint64_t before, std::uint64_t times) : before_(before), times_(times) {
  if (checked_product({before, times})) return;
  throw ConfigError(fmt::format("repeat({}) of {} records is more than can be counted", times, before),
                    "repeat fewer times, or ask the loader for more epochs");
}

std::uint64_t RepeatIndex::size() const noexcept { return before_ * times_; }

Located RepeatIndex::locate(const Located& at, IndexMemory* /*memory*/) const {
  return {.record = at.record % before_, .pass = at.pass * times_ + at.record / before_};
}

class RepeatStage final : public OrderStage<Passes> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override {
    return {.orders = true, .by_number = true, .repeats = true, .times = times()};
  }
  Indexed index(const StageInput& before) const override {
    auto stage = std::make_shared<const RepeatIndex>(before.positions, times());
    return {.positions = stage->size(), .stage = stage};
  }

 private:
  std::uint64_t times() const noexcept { return static_cast<std::uint64_t>(options().times); }
};

constexpr const char* kRepeat = "repeat";

}  // namespace

Dataset Dataset::repeat(std::int64_t times) const {
  if (times < 1) throw ConfigError(fmt::format("repeat({}): at least one pass is needed", times));
  return Dataset(add_stage(plan_, std::make_shared<const RepeatStage>(kRepeat, Passes{times})));
}

StageCall repeat_call() {
  return stage_call<Passes, [](const Dataset& data, Passes options) { return data.repeat(options.times); }>(
      kRepeat, {"times"});
}

}  // namespace headrace
