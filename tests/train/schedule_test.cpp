#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/optimizers.h"

namespace headrace::test {
namespace {

TEST(Schedule, ANumberIsConstant) {
  const Schedule rate = 0.25F;
  EXPECT_EQ(rate.at(0), 0.25F);
  EXPECT_EQ(rate.at(1'000'000), 0.25F);
}

TEST(Schedule, LinearWarmsUpAndDecays) {
  const Schedule rate = Schedule::linear_decay({.peak = 1, .floor = 0.2F, .warmup_steps = 4, .total_steps = 12});
  EXPECT_FLOAT_EQ(rate.at(0), 0.25F);
  EXPECT_FLOAT_EQ(rate.at(3), 1.0F);
  EXPECT_FLOAT_EQ(rate.at(4), 1.0F);
  EXPECT_FLOAT_EQ(rate.at(8), 0.6F);
  EXPECT_FLOAT_EQ(rate.at(12), 0.2F);
  EXPECT_FLOAT_EQ(rate.at(100), 0.2F);
}

TEST(Schedule, CosineFollowsItsFormulaAtEveryStep) {
  const Schedule rate = Schedule::cosine_decay({.peak = 2, .floor = 0.5F, .warmup_steps = 3, .total_steps = 13});
  for (std::uint64_t t = 0; t < 20; ++t) {
    const double done = std::min(1.0, (static_cast<double>(t) - 3) / 10);
    const double expected =
        t < 3 ? 2 * (static_cast<double>(t) + 1) / 3 : 0.5 + 1.5 * (1 + std::cos(std::numbers::pi * done)) / 2;
    EXPECT_FLOAT_EQ(rate.at(t), static_cast<float>(expected)) << t;
  }
}

TEST(Schedule, PiecewiseChangesAtItsBoundaries) {
  const Schedule rate = Schedule::piecewise({.rates = {0.3F, 0.2F, 0.1F}, .boundaries = {4, 7}});
  for (std::uint64_t t = 0; t < 12; ++t) EXPECT_EQ(rate.at(t), t < 4 ? 0.3F : t < 7 ? 0.2F : 0.1F) << t;
  EXPECT_EQ(Schedule::piecewise({.rates = {0.3F}}).at(9), 0.3F);
}

TEST(Schedule, ExponentialIsSmoothOrAStaircase) {
  const Schedule smooth = Schedule::exponential_decay({.initial = 0.5F, .factor = 0.8F, .every_steps = 4});
  const Schedule stairs =
      Schedule::exponential_decay({.initial = 0.5F, .factor = 0.8F, .every_steps = 4, .staircase = true});
  for (std::uint64_t t = 0; t < 30; ++t) {
    const double factor = static_cast<double>(0.8F);
    EXPECT_FLOAT_EQ(smooth.at(t), static_cast<float>(0.5 * std::pow(factor, static_cast<double>(t) / 4))) << t;
    EXPECT_FLOAT_EQ(stairs.at(t), static_cast<float>(0.5 * std::pow(factor, static_cast<double>(t / 4)))) << t;
  }
}

// Of 10 steps the peak is reached at 0.4 * 10 - 1 = 3.
TEST(Schedule, OneCycleRisesAndFalls) {
  OneCycleOptions options{.peak = 0.4F, .total_steps = 10, .warmup_share = 0.4F};
  options.initial_divisor = 20;
  options.final_divisor = 100;
  for (const bool linear : {false, true}) {
    options.linear = linear;
    const Schedule rate = Schedule::one_cycle(options);
    for (std::uint64_t t = 0; t < 14; ++t) {
      const double now = static_cast<double>(std::min<std::uint64_t>(t, 9));
      const double from = now <= 3 ? 0.02 : 0.4, to = now <= 3 ? 0.4 : 0.0002;
      const double done = now <= 3 ? now / 3 : (now - 3) / 6;
      const double way = linear ? done : (1 - std::cos(std::numbers::pi * done)) / 2;
      EXPECT_NEAR(rate.at(t), from + (to - from) * way, 1e-7) << t << (linear ? " linear" : " cosine");
    }
  }
}

TEST(Schedule, AWarmUpLeadsToWhatFollows) {
  const Schedule then = Schedule::cosine_decay({.peak = 0.8F, .total_steps = 9});
  const Schedule rate = Schedule::warm_up(4, then);
  for (std::uint64_t t = 0; t < 4; ++t) EXPECT_FLOAT_EQ(rate.at(t), 0.2F * static_cast<float>(t + 1));
  for (std::uint64_t t = 4; t < 20; ++t) EXPECT_EQ(rate.at(t), then.at(t - 4)) << t;
  // As a decay's own warm-up.
  const Schedule own = Schedule::linear_decay({.peak = 0.3F, .warmup_steps = 5, .total_steps = 21});
  const Schedule before = Schedule::warm_up(5, Schedule::linear_decay({.peak = 0.3F, .total_steps = 16}));
  for (std::uint64_t t = 0; t < 30; ++t) EXPECT_EQ(own.at(t), before.at(t)) << t;
}

TEST(Schedule, AChainCountsEachPartFromItsBeginning) {
  const std::vector<Schedule> parts{Schedule::exponential_decay({.initial = 1, .factor = 0.5F}), 0.25F,
                                    Schedule::linear_decay({.peak = 0.1F, .total_steps = 5})};
  const Schedule rate = Schedule::chained(parts, {3, 8});
  for (std::uint64_t t = 0; t < 20; ++t) {
    EXPECT_EQ(rate.at(t), t < 3 ? parts[0].at(t) : t < 8 ? 0.25F : parts[2].at(t - 8)) << t;
  }
  EXPECT_EQ(rate.zero_from(), 13U);
}

TEST(Schedule, KnowsFromWhichStepOnItIsZero) {
  EXPECT_EQ(Schedule::linear_decay({.peak = 1, .warmup_steps = 4, .total_steps = 12}).zero_from(), 12U);
  EXPECT_EQ(Schedule::cosine_decay({.peak = 1, .total_steps = 7}).zero_from(), 7U);
  EXPECT_EQ(Schedule::linear_decay({.peak = 1, .floor = 0.1F, .total_steps = 12}).zero_from(), std::nullopt);
  EXPECT_EQ(Schedule::linear_decay({.peak = 0, .total_steps = 12}).zero_from(), 0U);
  EXPECT_EQ(Schedule(0.1F).zero_from(), std::nullopt);
  EXPECT_EQ(Schedule(0.0F).zero_from(), 0U);
  EXPECT_EQ(Schedule::piecewise({.rates = {0.1F, 0, 0.1F, 0, 0}, .boundaries = {2, 4, 6, 8}}).zero_from(), 6U);
  EXPECT_EQ(Schedule::one_cycle({.peak = 0.1F, .total_steps = 10}).zero_from(), std::nullopt);
  EXPECT_EQ(Schedule::chained({0.1F, Schedule::piecewise({.rates = {0.1F, 0}, .boundaries = {3}}), 0.0F}, {5, 9})
                .zero_from(),
            8U);
  EXPECT_EQ(Schedule::warm_up(5, 0.0F).zero_from(), 0U);
}

TEST(Schedule, AnExponentialEndsWhereFloatsDo) {
  const Schedule rate = Schedule::exponential_decay({.initial = 1, .factor = 0.5F});
  ASSERT_TRUE(rate.zero_from());
  EXPECT_EQ(rate.at(*rate.zero_from()), 0);
  EXPECT_GT(rate.at(*rate.zero_from() - 1), 0);
  EXPECT_EQ(Schedule::exponential_decay({.initial = 1, .factor = 1}).zero_from(), std::nullopt);
}

TEST(Schedule, RefusesWhatCannotBe) {
  EXPECT_THROW(Schedule::linear_decay({.warmup_steps = 5, .total_steps = 5}), ConfigError);
  EXPECT_THAT(message_of([] { Schedule::cosine_decay({.peak = -1}); }), HasSubstr("peak is -1"));
  EXPECT_THAT(message_of([] {
                Schedule::piecewise({.rates = {1, 2}, .boundaries = {}});
              }),
              HasSubstr("0 boundaries part 1 rates, got 2"));
  EXPECT_THAT(message_of([] {
                Schedule::piecewise({.rates = {1, 2, 3}, .boundaries = {4, 4}});
              }),
              HasSubstr("at step 4 does not lie after 4"));
  EXPECT_THAT(message_of([] { Schedule::chained({1, 2}, {0}); }), HasSubstr("at step 0"));
  EXPECT_THAT(message_of([] { Schedule::chained({}, {}); }), HasSubstr("got 0"));
  EXPECT_THAT(message_of([] { Schedule::exponential_decay({.factor = 1.5F}); }), HasSubstr("1.5"));
  EXPECT_THAT(message_of([] { Schedule::exponential_decay({.every_steps = 0}); }), HasSubstr("0 steps"));
  EXPECT_THAT(message_of([] { Schedule::one_cycle({.total_steps = 3}); }), HasSubstr("3 steps"));
  EXPECT_THAT(message_of([] { Schedule::one_cycle({.total_steps = 10, .warmup_share = 1}); }),
              HasSubstr("share of 1"));
  EXPECT_THAT(message_of([] { Schedule::one_cycle({.total_steps = 10, .initial_divisor = 0.5F}); }),
              HasSubstr("divide its peak by 0.5"));
  EXPECT_THAT(message_of([] { Schedule::warm_up(0, 1.0F); }), HasSubstr("got 0"));
}

// A schedule of any form, whose interesting steps lie within the first `steps`.
Schedule random_schedule(Philox& random, std::uint32_t steps, int depth) {
  const auto rate = [&] { return random.below(3) == 0 ? 0.0F : random.uniform(); };
  const std::uint64_t length = 1 + random.below(steps);
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0: return rate();
    case 1:
      return Schedule::linear_decay({rate(), rate(), random.below(static_cast<std::uint32_t>(length)), length});
    case 2:
      return Schedule::cosine_decay({rate(), rate(), random.below(static_cast<std::uint32_t>(length)), length});
    case 3: {
      PiecewiseOptions options{.rates = {rate()}};
      for (std::uint64_t at = 1 + random.below(steps); at < steps; at += 1 + random.below(steps)) {
        options.rates.push_back(rate());
        options.boundaries.push_back(at);
      }
      return Schedule::piecewise(options);
    }
    case 4:
      return Schedule::exponential_decay(
          {rate(), random.below(2) == 0 ? 1e-9F : 0.9F, 1 + random.below(3), random.below(2) == 0});
    case 5:
      return Schedule::one_cycle({.peak = rate(), .total_steps = 8 + length, .linear = random.below(2) == 0});
    case 6: return Schedule::warm_up(length, random_schedule(random, steps, depth - 1));
    default: {
      std::vector<Schedule> parts{random_schedule(random, steps, depth - 1)};
      std::vector<std::uint64_t> boundaries;
      for (std::uint64_t at = 1 + random.below(steps); at < steps; at += 1 + random.below(steps)) {
        parts.push_back(random_schedule(random, steps, depth - 1));
        boundaries.push_back(at);
      }
      return Schedule::chained(parts, boundaries);
    }
  }
}

// Of any schedule: rates are finite and not negative, and the end is where all steps from there on have the rate 0
// and the one before has not.
TEST(Schedule, RandomOnesEndExactly) {
  Philox random({.seed = 17});
  for (int i = 0; i < 3000; ++i) {
    const Schedule schedule = random_schedule(random, 24, 3);
    constexpr std::uint64_t kHorizon = 1000;
    std::uint64_t end = kHorizon;
    for (std::uint64_t t = 0; t < kHorizon; ++t) {
      ASSERT_TRUE(std::isfinite(schedule.at(t)) && schedule.at(t) >= 0) << i << " at " << t;
    }
    while (end > 0 && schedule.at(end - 1) == 0) --end;
    const auto found = schedule.zero_from();
    if (end < kHorizon) {
      ASSERT_EQ(found, end) << i;
    } else if (found) {
      ASSERT_GE(*found, kHorizon) << i;  // an exponential's
    }
    ASSERT_EQ(schedule.at(std::uint64_t{1} << 60) == 0, found.has_value()) << i;
  }
}

TEST(Schedules, CountOptimizerStepsWhateverAnEpochIs) {
  // A rate for three steps, then none.
  const Schedule three = Schedule::piecewise({.rates = {0.1F, 0}, .boundaries = {3}});
  for (const int accumulate : {1, 2, 5}) {
    for (const std::uint64_t steps_per_epoch : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4}}) {
      Training training(2);
      Model model = compiled(training.strategy, small_mlp, sgd(three));
      const Dataset data = blobs(80).batch({.global_batch = 8});
      std::vector<std::vector<float>> last = variables_of(model);
      for (std::uint64_t step = 1; step <= 5; ++step) {
        model.fit(data, {.epochs = 10,
                         .steps_per_epoch = steps_per_epoch,
                         .verbose = 0,
                         .step = {.accumulate = accumulate},
                         .stop_after_steps = step});
        ASSERT_EQ(model.global_step(), step);
        const std::vector<std::vector<float>> now = variables_of(model);
        EXPECT_EQ(now != last, step <= 3) << accumulate << " batches, " << steps_per_epoch << " steps, " << step;
        last = now;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::test
