#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "headrace/devices/base/error.h"
#include "headrace/tests/train/fit/callbacks/watched_fit.h"

namespace headrace {
namespace {

using test::report_losses;
using test::Training;
using testing::AllOf;
using testing::HasSubstr;

class EarlyStoppingTest : public testing::Test {
 protected:
  std::size_t epochs(const EarlyStoppingOptions& options, const std::vector<double>& losses) {
    return report_losses(early_stopping(options), model_, losses);
  }

  Training training_{1};
  Model model_ = test::compiled(training_.strategy, test::small_mlp);
};

TEST_F(EarlyStoppingTest, WaitsAsManyEpochsAsItIsToldTo) {
  const std::vector<double> losses = {5, 4, 4.5, 4.2, 3, 3.5, 3.4, 3.3, 3.2, 3.1};
  EXPECT_EQ(epochs({.patience = 0}, losses), 3U);
  EXPECT_EQ(epochs({.patience = 1}, losses), 3U);
  EXPECT_EQ(epochs({.patience = 3}, losses), 8U);
  EXPECT_EQ(epochs({.patience = 6}, losses), losses.size());
}

TEST_F(EarlyStoppingTest, CountsWhatIsBetterByEnough) {
  EXPECT_EQ(epochs({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.55, 4.4, 4.3}), 3U) << "nothing is 0.5 below 5";
  EXPECT_EQ(epochs({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.4, 4.3, 4.2}), 5U);
  EXPECT_EQ(epochs({.patience = 2, .mode = Better::kHigher}, {1, 2, 3, 3, 3, 9}), 5U);
}

TEST_F(EarlyStoppingTest, NeverTakesWhatIsNotFiniteForBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(epochs({.patience = 3}, {nan, inf, -inf, 1, 1}), 3U);
  EXPECT_EQ(epochs({.patience = 2}, {5, nan, 4, nan, nan, 1}), 5U);
}

TEST_F(EarlyStoppingTest, KnowsWhichWayIsBetter) {
  const auto stops_after = [&](const std::string& name, double first, double second) {
    const Callback callback = early_stopping({.monitor = name});
    FitControl control(model_);
    for (const double value : {first, second}) {
      callback.on_epoch_end({.steps = 1,
                             .planned_steps = 1,
                             .loss = value,
                             .val_loss = value,
                             .metrics = {{.name = "accuracy", .values = {value}}},
                             .val_metrics = {{.name = "top_5", .values = {value}}}},
                            control);
    }
    return control.stop_requested();
  };
  for (const char* name : {"accuracy", "val_top_5"}) {
    EXPECT_FALSE(stops_after(name, 0.5, 0.6)) << name;
    EXPECT_TRUE(stops_after(name, 0.6, 0.5)) << name;
  }
  EXPECT_TRUE(stops_after("loss", 0.5, 0.6));
  EXPECT_FALSE(stops_after("val_loss", 0.6, 0.5));
}

TEST_F(EarlyStoppingTest, AnUnknownNameListsTheNames) {
  const Dataset data = test::blobs(16).batch({.global = 8});
  const auto message = [&](const std::string& monitor, bool validated) {
    FitOptions options{.callbacks = {early_stopping({.monitor = monitor})}, .verbose = 0};
    if (validated) options.validation = data;
    try {
      model_.fit(data, options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no ConfigError");
  };
  EXPECT_THAT(message("val_los", true), AllOf(HasSubstr("'val_los'"), HasSubstr("loss, accuracy, val_loss")));
  EXPECT_THAT(message("val_loss", false), AllOf(HasSubstr("validation"), HasSubstr("loss, accuracy, steps")));
}

TEST_F(EarlyStoppingTest, PassesOverAnEpochThatWasStopped) {
  const Callback callback = early_stopping();
  FitControl control(model_);
  EXPECT_NO_THROW(callback.on_epoch_end({.steps = 3, .planned_steps = 10, .loss = 1}, control));
}

TEST_F(EarlyStoppingTest, RefusesWhatCannotBe) {
  EXPECT_THROW(early_stopping({.patience = -1}), ConfigError);
  EXPECT_THROW(early_stopping({.min_delta = -0.1}), ConfigError);
}

// With all that an optimizer keeps beside the weights; the best epoch is the second.
TEST_F(EarlyStoppingTest, GivesTheBestWeightsBack) {
  model_.compile({.optimizer = test::with_all_around(adam(0.1F))});
  std::vector<std::string> names = model_.variable_names();
  for (const std::string& name : model_.optimizer_variable_names()) {
    if (name.ends_with(":slow") || name.ends_with(":average")) names.push_back(name);
  }
  ASSERT_GT(names.size(), model_.variable_names().size());
  const auto read = [&] {
    std::vector<std::vector<float>> values;
    for (const std::string& name : names) values.push_back(model_.read_variable(name));
    return values;
  };
  std::vector<std::vector<float>> best;
  const std::vector<double> losses = {3, 1, 2, 4};
  const Callback stop = early_stopping({.patience = 5, .restore_best_weights = true});
  Callback chosen = stop;
  chosen.on_epoch_end = [&](const EpochReport& report, FitControl& control) {
    if (report.epoch == 1) best = read();
    EpochReport changed = report;
    changed.val_loss = losses[static_cast<std::size_t>(report.epoch)];
    stop.on_epoch_end(changed, control);
  };
  const Dataset data = test::blobs(40).batch({.global = 8});
  model_.fit(data, {.epochs = 4, .callbacks = {chosen}, .verbose = 0});
  EXPECT_EQ(read(), best);
}

// The best, the waiting and the best weights go through a checkpoint; a fit after the resumed one begins anew.
TEST_F(EarlyStoppingTest, GoesOnFromWhatItSaved) {
  const EarlyStoppingOptions options{.patience = 3, .restore_best_weights = true};
  const Callback first = early_stopping(options);
  const std::vector<std::vector<float>> best = test::variables_of(model_);
  EXPECT_EQ(report_losses(first, model_, {2, 3, 3}), 3U);
  const std::string state = first.save();

  for (const std::string& name : model_.variable_names()) {
    std::vector<float> values = model_.read_variable(name);
    for (float& value : values) value += 1;
    model_.write_variable(name, values);
  }
  const Callback second = early_stopping(options);
  second.restore(state);
  EXPECT_EQ(report_losses(second, model_, {2.5, 1, 1}), 1U) << "two epochs were waited before";
  EXPECT_EQ(test::variables_of(model_), best) << "those of the first program, bit for bit";
  EXPECT_EQ(report_losses(second, model_, {2.5, 1, 2, 2, 2}), 5U) << "another fit";

  const Callback ended = early_stopping(options);
  report_losses(ended, model_, {1, 2, 2, 2});
  second.restore(ended.save());
  EXPECT_EQ(report_losses(second, model_, {0.5}), 0U) << "it had asked for the end";

  for (const char* damaged : {"", "{}", R"({"best": "x", "waited": 0, "variables": []})",
                              R"({"best": 1, "waited": 0, "variables": [["dense/bias", "###="]]})",
                              R"({"best": 1, "waited": 0, "variables": [["dense/bias", "AAA="]]})"}) {
    EXPECT_THROW(second.restore(damaged), ConfigError) << damaged;
  }
}

}  // namespace
}  // namespace headrace
