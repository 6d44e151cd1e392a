#include "headrace/pipeline/engine/foreign_state.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/operations/decode.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMaxSeed = 100'000;
constexpr std::int64_t kMaxBatch = 65'536;

class Hypotheses {
 public:
  Hypotheses(StreamPlan plan, std::uint64_t seed, const FilterFailures& filter_failures, std::uint64_t wanted)
      : plan_(std::move(plan)), seed_(seed), filter_failures_(filter_failures), wanted_(wanted) {}

  std::optional<std::string> seed() const {
    const std::uint64_t identity = plan_.fingerprint();
    for (std::uint64_t seed = 0; seed < kMaxSeed; ++seed) {
      if (is_wanted(identity, seed)) return fmt::format("its seed was {}, here it is {}", seed, seed_);
    }
    return std::nullopt;
  }

  std::optional<std::string> batch() {
    const BatchOptions here = *plan_.batch;
    for (const Remainder remainder :
         {here.remainder, here.remainder == Remainder::kDrop ? Remainder::kKeep : Remainder::kDrop}) {
      for (std::int64_t global = 1; global <= kMaxBatch; ++global) {
        plan_.batch->global = global;
        plan_.batch->remainder = remainder;
        if (!is_wanted(plan_.fingerprint(), seed_)) continue;
        if (global == here.global) return "its last batch of an epoch was treated otherwise";
        return fmt::format("its global batch had {} examples, here it has {}", global, here.global);
      }
    }
    plan_.batch = here;
    return std::nullopt;
  }

  // A stage that the plan has now and had not then.
  template <typename Stages>
  std::optional<std::string> stage_of(Stages StreamPlan::*member, const auto& name) {
    const Stages all = plan_.*member;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Stages& fewer = plan_.*member;
      fewer = all;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_wanted(plan_.fingerprint(), seed_)) return fmt::format("its plan had no {}", name(all[i]));
    }
    plan_.*member = all;
    return std::nullopt;
  }

 private:
  bool is_wanted(std::uint64_t identity, std::uint64_t seed) const {
    return filter_failures_.mixed_into(mix_seed(identity, seed)) == wanted_;
  }

  StreamPlan plan_;
  std::uint64_t seed_;
  const FilterFailures& filter_failures_;
  std::uint64_t wanted_;
};

}  // namespace

std::string describe_difference(StreamPlan plan, std::uint64_t seed, const FilterFailures& filter_failures,
                                std::uint64_t fingerprint) {
  Hypotheses is(std::move(plan), seed, filter_failures, fingerprint);
  if (const auto found = is.seed()) return *found;
  if (const auto found = is.batch()) return *found;
  const auto name = [](const auto& stage) { return describe(stage); };
  if (const auto found = is.stage_of(&StreamPlan::index_stages, name)) return *found;
  if (const auto found = is.stage_of(&StreamPlan::sample_stages, name)) return *found;
  return "its data or its operations were others, or more than one thing differs";
}

}  // namespace headrace
