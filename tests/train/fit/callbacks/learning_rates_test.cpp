// The callbacks that change learning rates.
#include "headrace/tests/train/fit/callbacks/watched_fit.h"

namespace headrace::test {
namespace {

class LearningRatesTest : public testing::Test {
 protected:
  // The scale after epochs of these losses.
  double scale_after(const Callback& callback, const std::vector<double>& losses) {
    model_.compile({.optimizer = sgd(0.5F)});
    report_losses(callback, model_, losses);
    return FitControl(model_).learning_rate_scale();
  }

  Training training_{2};
  Model model_ = compiled(training_.strategy, small_mlp, sgd(0.5F));
  Dataset data_ = blobs(40).batch({.global_batch = 8});
};

TEST_F(LearningRatesTest, APlateauReducesThem) {
  const Callback callback = reduce_lr_on_plateau({.factor = 0.5, .patience = 2});
  EXPECT_EQ(scale_after(callback, {3, 2, 2}), 1.0);
  EXPECT_EQ(scale_after(callback, {3, 2, 2, 2}), 0.5);
  EXPECT_EQ(scale_after(callback, {3, 2, 2, 2, 2}), 0.5) << "waiting begins again";
  EXPECT_EQ(scale_after(callback, {3, 2, 2, 2, 2, 2}), 0.25);
  EXPECT_EQ(scale_after(callback, {3, 2, 2, 1, 1, 0.5}), 1.0);
  EXPECT_EQ(scale_after(callback, {3, 2.99995, 2.99992}), 0.5) << "less than min_delta";
}

TEST_F(LearningRatesTest, APlateausCooldownAndFloor) {
  const Callback cools = reduce_lr_on_plateau({.factor = 0.5, .patience = 1, .cooldown = 2});
  EXPECT_EQ(scale_after(cools, {1, 1}), 0.5);
  EXPECT_EQ(scale_after(cools, {1, 1, 1, 1}), 0.5);
  EXPECT_EQ(scale_after(cools, {1, 1, 1, 1, 1}), 0.25);
  const Callback floor = reduce_lr_on_plateau({.factor = 0.5, .patience = 1, .min_scale = 0.3});
  EXPECT_EQ(scale_after(floor, {1, 1, 1, 1}), 0.3);
}

TEST_F(LearningRatesTest, APlateauGoesOnFromWhatItSaved) {
  const ReduceLrOnPlateauOptions options{.factor = 0.5, .patience = 3};
  const Callback first = reduce_lr_on_plateau(options);
  scale_after(first, {1, 1, 1});
  const Callback second = reduce_lr_on_plateau(options);
  second.restore(first.save());
  EXPECT_EQ(scale_after(second, {1}), 0.5);
  EXPECT_THROW(second.restore("{}"), ConfigError);
}

TEST_F(LearningRatesTest, WhatCannotBeIsRefused) {
  for (const ReduceLrOnPlateauOptions& wrong : {ReduceLrOnPlateauOptions{.factor = 1},
                                                {.factor = 0},
                                                {.factor = std::nan("")},
                                                {.patience = -1},
                                                {.cooldown = -1},
                                                {.min_scale = -1}}) {
    EXPECT_THROW(reduce_lr_on_plateau(wrong), ConfigError);
  }
  EXPECT_THROW(learning_rate_scheduler({}), ConfigError);
}

// Trains as with the rates in a schedule.
TEST_F(LearningRatesTest, AFunctionOfTheEpochSetsThem) {
  const Callback halves = learning_rate_scheduler([](int epoch) { return 0.5 * std::pow(0.5, epoch); });
  const History history = model_.fit(data_, {.epochs = 3, .callbacks = {halves}, .verbose = 0});
  EXPECT_THAT(history["learning_rate"], ElementsAre(0.5, 0.25, 0.125));
  Model other = compiled(training_.strategy, small_mlp,
                         sgd(Schedule::piecewise({.rates = {0.5F, 0.25F, 0.125F}, .boundaries = {5, 10}})));
  other.fit(data_, {.epochs = 3, .verbose = 0});
  EXPECT_EQ(model_.weights_sha256(), other.weights_sha256());
}

TEST_F(LearningRatesTest, AFunctionOfTheEpochNeedsAConstantRate) {
  const Callback callback = learning_rate_scheduler([](int) { return 0.1; });
  for (const Optimizer& wrong : {sgd(Schedule::linear_decay({.total_steps = 10})), sgd(0.0F)}) {
    model_.compile({.optimizer = wrong});
    EXPECT_THROW(model_.fit(data_, {.callbacks = {callback}, .verbose = 0}), ConfigError);
    EXPECT_EQ(model_.global_step(), 0U);
  }
  model_.compile({.optimizer = sgd(0.5F)});
  for (const double wrong : {-0.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Callback gives = learning_rate_scheduler([wrong](int) { return wrong; });
    EXPECT_THROW(model_.fit(data_, {.callbacks = {gives}, .verbose = 0}), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace headrace::test
