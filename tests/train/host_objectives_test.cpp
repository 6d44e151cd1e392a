// Losses and metrics that the host computes a batch at a time: the numbers of their built-in and per-example
// forms, on devices with and without memory of their own.
#include "headrace/tests/train/score_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kInputs = 6, kResults = 3;

Node line(Graph& g) { return g.dense(g.input("image", {kInputs}), kResults); }

// Uneven: the last batch has six examples, which leaves some of four replicas with fewer.
Dataset float_batches() { return float_data(38, kInputs, kResults).dataset().batch({.global_batch = 8}); }

Loss log_cosh_of_batch() {
  return host_batch_loss("log_cosh", [](const HostBatch& batch) {
    const auto rows = static_cast<std::int64_t>(batch.losses.size());
    const auto width = batch.result.elements() / rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      double loss = 0;
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
        const double error =
            static_cast<double>(batch.result.as<float>()[i]) - static_cast<double>(batch.labels.as<float>()[i]);
        loss += std::log(std::cosh(error));
        if (batch.gradient.defined()) batch.gradient.as<float>()[i] = static_cast<float>(std::tanh(error));
      }
      batch.losses[static_cast<std::size_t>(row)] = static_cast<float>(loss);
    }
  });
}

// The coefficient of determination of all elements, of the errors' squares and of the labels' sums.
Metric r_squared() {
  return host_metric({.name = "r_squared",
                      .sums = 4,
                      .add =
                          [](const HostBatch& batch, std::span<double> sums) {
                            for (std::int64_t i = 0; i < batch.labels.elements(); ++i) {
                              const double label = static_cast<double>(batch.labels.as<float>()[i]);
                              const double error = static_cast<double>(batch.result.as<float>()[i]) - label;
                              sums[0] += 1;
                              sums[1] += label;
                              sums[2] += label * label;
                              sums[3] += error * error;
                            }
                          },
                      .value = [](std::span<const double> sums) -> MetricValue {
                        const double spread = sums[2] - sums[1] * sums[1] / sums[0];
                        return {.values = {1 - sums[3] / spread}};
                      }});
}

Training training_on(bool own_memory, int replicas) {
  return own_memory ? Training(own_memory_devices(replicas, "discrete", DeviceNeed::kKernels))
                    : Training(replicas);
}

TEST(HostBatchLoss, TrainsTheWeightsOfTheSameFunctionByExample) {
  for (const bool own_memory : {false, true}) {
    for (const int replicas : {1, 3}) {
      std::vector<std::string> weights;
      for (const Loss& loss : {log_cosh_of_batch(), log_cosh()}) {
        Training training = training_on(own_memory, replicas);
        Model model = training.strategy.build(line, {.seed = 3});
        model.compile({.optimizer = adam(1e-2F), .loss = loss, .metrics = {}});
        const History history = model.fit(float_batches(), {.epochs = 3, .verbose = 0});
        EXPECT_LT(history["loss"].back(), history["loss"].front());
        weights.push_back(model.weights_sha256());
      }
      EXPECT_EQ(weights[0], weights[1]) << replicas << (own_memory ? " with own memory" : "");
    }
  }
}

TEST(HostBatchLoss, TakesLabelsOfAnyTypeAndSeesRealExamplesOnly) {
  Training training(3);
  Model model = training.strategy.build(line, {.seed = 3});
  std::atomic<std::int64_t> seen = 0;
  model.compile({.loss = host_batch_loss("seen",
                                         [&](const HostBatch& batch) {
                                           seen += batch.labels.shape[0];
                                           EXPECT_EQ(batch.labels.dtype, DType::kU8);
                                           std::ranges::fill(batch.losses, 1.0F);
                                         }),
                 .metrics = {}});
  const Dataset data =
      Dataset::from(in_memory("bytes", 14,
                              {array_of("image", Shape{kInputs}, std::vector<float>(14 * kInputs)),
                               array_of("label", Shape{2}, std::vector<std::uint8_t>(28))}))
          .batch({.global_batch = 8});
  EXPECT_EQ(model.evaluate(data).loss, 1);
  EXPECT_EQ(seen, 14);
}

TEST(HostMetric, HasTheValueOfAllExamplesTogether) {
  for (const bool own_memory : {false, true}) {
    for (const int replicas : {1, 3}) {
      Training training = training_on(own_memory, replicas);
      Model model = training.strategy.build(line, {.seed = 3});
      model.compile({.loss = mean_squared_error(), .metrics = {r_squared(), mean_absolute_error()}});
      const Evaluation found = model.evaluate(float_batches());
      const FloatData data = float_data(38, kInputs, kResults);
      const std::vector<float> results = model.predict(float_batches()).values;
      double count = 0, labels = 0, squares = 0, errors = 0;
      for (std::size_t i = 0; i < data.labels.size(); ++i) {
        const auto label = static_cast<double>(data.labels[i]);
        count += 1, labels += label, squares += label * label;
        errors += std::pow(static_cast<double>(results[i]) - label, 2);
      }
      EXPECT_NEAR(find_metric(found.metrics, "r_squared")->number(),
                  1 - errors / (squares - labels * labels / count), 1e-9);
      const History history =
          model.fit(float_batches(), {.epochs = 2, .validation = float_batches(), .verbose = 0});
      EXPECT_GT(history["val_r_squared"].back(), find_metric(found.metrics, "r_squared")->number());
    }
  }
}

// Whole numbers, so that the sums are exact; the second epoch is resumed in its middle.
TEST(HostMetric, CountsOnAfterAResumption) {
  const Metric count = host_metric({.name = "count",
                                    .sums = 2,
                                    .add =
                                        [](const HostBatch& batch, std::span<double> sums) {
                                          sums[0] += static_cast<double>(batch.result.shape[0]);
                                          sums[1] += 1;
                                        },
                                    .value = [](std::span<const double> sums) -> MetricValue {
                                      return {.values = {sums[0], sums[1]}, .shape = {2}};
                                    }});
  const TempFolder folder;
  std::vector<double> values;
  const Callback keep{.on_epoch_end = [&](const EpochReport& report, FitControl&) {
    values = find_metric(report.metrics, "count")->values;
  }};
  for (const std::uint64_t stop : {std::uint64_t{7}, std::uint64_t{0}}) {
    Training training(2);
    Model model = training.strategy.build(line, {.seed = 3});
    model.compile({.loss = mean_squared_error(), .metrics = {count}});
    model.fit(float_batches(), {.epochs = 2,
                                .callbacks = {keep},
                                .verbose = 0,
                                .stop_after_steps = stop,
                                .checkpoints = CheckpointOptions{.folder = folder / "run"},
                                .resume = true});
    EXPECT_THAT(values, stop > 0 ? ElementsAre(16, 4) : ElementsAre(38, 10));
  }
}

TEST(HostMetric, IsWeightedOnRequest) {
  const auto mean = [](bool takes_weights) {
    return host_metric(
        {.name = "mean",
         .sums = 2,
         .add =
             [](const HostBatch& batch, std::span<double> sums) {
               for (std::int64_t i = 0; i < batch.result.shape[0]; ++i) {
                 const float weight = batch.weights.defined() ? batch.weights.as<float>()[i] : 1.0F;
                 sums[0] += static_cast<double>(weight * batch.labels.as<float>()[i]);
                 sums[1] += static_cast<double>(weight);
               }
             },
         .value = [](std::span<const double> sums) -> MetricValue { return {.values = {sums[0] / sums[1]}}; },
         .takes_weights = takes_weights});
  };
  EXPECT_THROW(mean(false).weighted(), ConfigError);
  Training training(2);
  Model model = training.strategy.build([](Graph& g) { return g.dense(g.input("image", {1}), 1); });
  model.compile(
      {.loss = mean_squared_error().weighted_by("weight"), .metrics = {mean(true), mean(true).weighted()}});
  const Dataset data = Dataset::from(in_memory("weighted", 4,
                                               {array_of("image", Shape{1}, std::vector<float>(4)),
                                                array_of("label", Shape{1}, std::vector<float>{1, 2, 3, 4}),
                                                array_of("weight", Shape{}, std::vector<float>{0, 0, 1, 3})}))
                           .batch({.global_batch = 4});
  const Evaluation found = model.evaluate(data);
  EXPECT_EQ(find_metric(found.metrics, "mean")->number(), 2.5);
  EXPECT_EQ(find_metric(found.metrics, "weighted_mean")->number(), 3.75);
}

TEST(HostMetric, WhatIsIncompleteIsRefusedAndExceptionsEndTheRun) {
  EXPECT_THROW(host_metric({}), ConfigError);
  EXPECT_THROW(host_metric({.name = "half", .sums = 1}), ConfigError);
  EXPECT_THROW(host_batch_loss("none", {}), ConfigError);
  Training training(2);
  Model model = training.strategy.build(line);
  model.compile(
      {.loss = mean_squared_error(),
       .metrics = {host_metric({.name = "picky",
                                .add = [](const HostBatch&, std::span<double>) { throw ConfigError("not these"); },
                                .value = [](std::span<const double>) { return MetricValue{.values = {0}}; }})}});
  EXPECT_THAT(error_of([&] { model.fit(float_batches(), {.verbose = 0}); }).what(),
              AllOf(HasSubstr("not these"), HasSubstr("replica")));
}

}  // namespace
}  // namespace headrace::test
