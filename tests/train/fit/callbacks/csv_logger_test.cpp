// Files of metrics, and learning rates from callbacks.
#include "headrace/tests/train/fit/callbacks/watched_fit.h"

namespace headrace::test {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
  return cells;
}

class CsvLoggerTest : public testing::Test {
 protected:
  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "run.csv";
  Training training_{1};
  Model model_ = compiled(training_.strategy, small_mlp);
};

TEST_F(CsvLoggerTest, WritesWhatTheHistoryHas) {
  const Dataset data = blobs(24).batch({.global_batch = 8});
  const History history =
      model_.fit(data, {.epochs = 3, .validation = data, .callbacks = {csv_logger(path_)}, .verbose = 0});
  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 4U);
  const std::vector<std::string> names = cells_of(lines[0]);
  EXPECT_EQ(names.size(), history.lists().size() + 1);
  EXPECT_THAT(std::vector(names.begin(), names.begin() + 5),
              ElementsAre("epoch", "loss", "accuracy", "val_loss", "val_accuracy"));
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<std::string> cells = cells_of(lines[epoch + 1]);
    ASSERT_EQ(cells.size(), names.size());
    EXPECT_EQ(cells[0], std::to_string(epoch + 1));
    for (std::size_t i = 1; i < names.size(); ++i) {
      EXPECT_EQ(std::stod(cells[i]), history[names[i]][epoch]) << names[i] << ", all digits";
    }
  }
}

TEST_F(CsvLoggerTest, AnotherFitReplacesTheFile) {
  const Callback logger = csv_logger(path_);
  report_losses(logger, model_, {3, 2, 1});
  EXPECT_EQ(lines_of(path_).size(), 4U);
  report_losses(logger, model_, {5});
  EXPECT_EQ(lines_of(path_).size(), 2U);
}

TEST_F(CsvLoggerTest, AValueThatAnEpochLacksIsEmpty) {
  const Callback logger = csv_logger(path_);
  FitControl control(model_);
  logger.on_train_begin(control);
  logger.on_epoch_end({.steps = 9, .planned_steps = 9, .loss = 1, .val_loss = 2}, control);
  logger.on_epoch_end({.epoch = 1, .steps = 3, .planned_steps = 9, .loss = 1}, control);
  EXPECT_THAT(lines_of(path_)[2], StartsWith("2,1,,3,"));
}

TEST_F(CsvLoggerTest, QuotesANameWithCommas) {
  const Callback logger = csv_logger(path_);
  FitControl control(model_);
  logger.on_train_begin(control);
  logger.on_epoch_end({.steps = 1, .planned_steps = 1, .metrics = {{.name = "a,\"b\"", .values = {4}}}}, control);
  EXPECT_THAT(lines_of(path_)[0], StartsWith("epoch,loss,\"a,\"\"b\"\"\",steps"));
}

// A run that was killed two epochs after its checkpoint and resumed from there.
TEST_F(CsvLoggerTest, AResumedFitGoesOnBehindItsLines) {
  const Callback first = csv_logger(path_);
  report_losses(first, model_, {4, 3});
  const std::string state = first.save();
  const std::vector<std::string> saved = lines_of(path_);
  FitControl control(model_);
  first.on_epoch_end({.epoch = 2, .steps = 1, .planned_steps = 1, .loss = 99, .val_loss = 99}, control);

  const Callback second = csv_logger(path_);
  second.restore(state);
  second.on_train_begin(control);
  EXPECT_EQ(lines_of(path_), saved);
  second.on_epoch_end({.epoch = 2, .steps = 1, .planned_steps = 1, .loss = 4, .val_loss = 2}, control);
  ASSERT_EQ(lines_of(path_).size(), 4U);
  EXPECT_THAT(lines_of(path_)[3], StartsWith("3,4,2,1"));
  EXPECT_THROW(second.restore("[]"), ConfigError);
}

TEST_F(CsvLoggerTest, AFolderThatIsNotThereEndsTheFitAtItsBegin) {
  const Dataset data = blobs(24).batch({.global_batch = 8});
  const Callback logger = csv_logger(folder_ / "none" / "run.csv");
  EXPECT_THROW(model_.fit(data, {.callbacks = {logger}, .verbose = 0}), DataError);
  EXPECT_EQ(model_.global_step(), 0U);
}

// The callbacks that change learning rates.

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
