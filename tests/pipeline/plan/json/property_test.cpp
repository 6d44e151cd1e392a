// Random plans, of all stages and operations that can stand together: written and read they are the same.
#include "headrace/tests/pipeline/plan/json/plan_json.h"

namespace headrace::test {
namespace {

// Everything of a plan is drawn from its number.
class RandomPlans {
 public:
  RandomPlans(const PlanParts& parts, std::uint64_t number)
      : parts_(parts), random_({.seed = 11, .record = number}) {}

  Dataset plan() {
    Dataset dataset = of_records(/*depth=*/0);
    if (one_in(2)) dataset = dataset.cache(memory(below(1 << 20)));
    dataset = dataset.map(operations());
    const bool mixes = one_in(3);
    if (mixes) dataset = dataset.map(to_floats() | one_hot(10, part()));
    if (one_in(3)) dataset = dataset.shuffle({.seed = any()});
    dataset =
        dataset.batch({.global_batch = 1 + static_cast<std::int64_t>(below(9)), .drop_remainder = one_in(3)});
    if (mixes) dataset = dataset.map(mixing());
    return one_in(2) ? dataset.prefetch(static_cast<int>(below(4))) : dataset;
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return random_.below(bound); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }
  std::uint64_t any() { return std::uint64_t{random_.next_u32()} << 32 | random_.next_u32(); }
  float part() { return random_.uniform(); }
  template <typename Choices>
  auto one_of(const Choices& choices) {
    return choices[below(static_cast<std::uint32_t>(std::size(choices)))];
  }

  Dataset of_records(int depth) {
    Dataset dataset = depth < 2 && one_in(3) ? combined(depth) : Dataset::from(parts_.sources.at("noise"));
    for (std::uint32_t left = below(5); left > 0; --left) dataset = on_positions(dataset);
    return dataset;
  }

  Dataset combined(int depth) {
    std::vector<Dataset> parts;
    for (std::uint32_t left = 1 + below(3); left > 0; --left) parts.push_back(of_records(depth + 1));
    switch (below(3)) {
      case 0: return concatenate(parts);
      case 1: return interleave(parts, {.block = 1 + below(4)});
      default: break;
    }
    MixOptions options{.seed = any(), .end = one_in(2) ? MixEnd::kFirstEnds : MixEnd::kAllSeen};
    for (std::size_t i = 0; i < parts.size(); ++i) options.weights.push_back(0.5 + double{part()} / 3);
    if (one_in(2)) options.weights.clear();
    return mix(parts, options);
  }

  Dataset on_positions(const Dataset& before) {
    switch (below(9)) {
      case 0: return before.shuffle({.seed = any(), .reshuffle_each_epoch = one_in(2)});
      case 1:
        return before.shuffle_window({.size = 1 + below(20), .seed = any(), .reshuffle_each_epoch = one_in(2)});
      case 2: return before.repeat(1 + below(3));
      case 3: return before.take(15 + below(30));
      case 4: return before.skip(below(4));
      case 5: return before.shard(2, below(2));
      case 6: return before.without_shard(3, below(3));
      case 7: return before.shard_for_worker({.count = 2, .index = below(2)});
      default: return before.shuffle();
    }
  }

  Operations to_floats() {
    return normalize({part(), part(), part()}, {1 - part() / 2, 1 - part() / 2, 1 - part() / 2});
  }

  Operations operations() {
    Operations chain = flip(part());
    for (std::uint32_t left = below(4); left > 0; --left) chain = std::move(chain) | on_bytes();
    if (one_in(3)) chain = std::move(chain) | user_;
    chain = std::move(chain) | center_crop(6);
    if (one_in(2)) chain = std::move(chain) | cast(DType::kF32) | brightness_contrast({.contrast = part()});
    return chain;
  }

  Operations on_bytes() {
    const int size = 8 + static_cast<int>(below(4));
    switch (below(11)) {
      case 0: return pad_crop(size, 4, one_in(2) ? Padding::kZero : Padding::kReflect);
      case 1:
        return random_resized_crop(
            {.size = size, .area = {0.1F + 0.5F * part(), 1}, .ratio = {0.75F, 1 + part()}});
      case 2: return resize(size);
      case 3: return color_jitter({.brightness = part(), .saturation = part(), .hue = 0.5F * part()});
      case 4: return cutout(1 + static_cast<int>(below(5)), {255 * part()});
      case 5: return alternating_flip();
      case 6: return rand_augment({.magnitude = static_cast<int>(below(31)), .fill = {255 * part()}});
      case 7: return random_affine({.degrees = {0, 90 * part()}, .scale = {0.5F + 0.5F * part(), 1}});
      case 8: return gaussian_blur({.kernel_size = 3, .sigma = {0.1F, 1 + part()}, .probability = part()});
      case 9: return random_erasing({.probability = part(), .fill = {255 * part()}});
      default: return flip(part());
    }
  }

  Operations mixing() {
    if (one_in(2)) return mixup({.alpha = 0.1F + part(), .probability = part()});
    return cutmix({.alpha = 0.1F + part(), .probability = part()});
  }

  const PlanParts& parts_;
  const Operations user_ = parts_.operations.front();
  Philox random_;
};

TEST(PlanJsonProperty, RandomPlansAreTheSameOnceReadAgain) {
  const Operations first_row =
      user_operation({.name = "first value",
                      .version = 7,
                      .outputs = {{.name = "first", .dtype = DType::kU8, .shape = {1}}},
                      .function = [](UserSample& sample) { sample.put(0, sample.bytes(0).first(1)); }});
  const PlanParts parts{.sources = {{"noise", noise_images(41, 12, 14)}}, .operations = {first_row}};
  constexpr std::uint64_t kPlans = 400, kRun = 40;  // of those, run to compare their streams
  for (std::uint64_t number = 0; number < kPlans; ++number) {
    SCOPED_TRACE(number);
    const Dataset plan = RandomPlans(parts, number).plan();
    expect_same_plan(plan, parts);
    if (number < kRun && plan.steps_per_epoch() > 0) expect_same_stream(plan, parts);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace headrace::test
