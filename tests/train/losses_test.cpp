// Losses through whole nets: their gradients against difference quotients, their values against double precision,
// on one replica and on several.
#include "headrace/train/losses.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/train/score_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// One example's loss, in double.
using RealLoss = std::function<double(const Reals& result, const Reals& labels)>;

RealLoss real_elements(ElementLoss loss, double smoothing = 0) {
  return [=](const Reals& x, Reals t) {
    for (double& value : t) value = (1 - smoothing) * value + smoothing / 2;
    return element_loss(loss, x, t);
  };
}

struct LossCase {
  std::string name;
  Loss loss;
  RealLoss real;
  bool softmax = false;
  bool class_numbers = false;
};

std::ostream& operator<<(std::ostream& out, const LossCase& each) { return out << each.name; }

constexpr std::int64_t kWidth = 5, kOutputs = 3;

Node plain_net(Graph& g) {
  return g.dense(g.dense(g.input("image", {kWidth}), 6, {.activation = Activation::kGelu}), kOutputs);
}
Node softmax_net(Graph& g) { return g.softmax(plain_net(g)); }

Dataset data_of(const LossCase& given, std::int64_t count) {
  if (given.class_numbers) return blobs(count, {kWidth}, kOutputs, 2);
  return float_data(count, kWidth, kOutputs).dataset();
}

Model model_of(Training& training, const LossCase& given) {
  Model model = training.strategy.build(given.softmax ? Net(softmax_net) : Net(plain_net), {.seed = 3});
  model.compile({.optimizer = adam(1e-2F), .loss = given.loss, .metrics = {}});
  return model;
}

const LossCase kLosses[] = {
    {"sparse", sparse_categorical_crossentropy({.label_smoothing = 0.1F}),
     [](const Reals& x, const Reals& t) { return cross_entropy(x, static_cast<std::size_t>(t[0]), 0.1F); }, false,
     true},
    {"dense", categorical_crossentropy(),
     [](const Reals& x, const Reals& t) { return soft_cross_entropy(x, t, 0); }},
    {"dense_smoothed_from_probabilities",
     categorical_crossentropy({.from_logits = false, .label_smoothing = 0.2F}),
     // The softmax's results: their logarithms are logits.
     [](const Reals& p, const Reals& t) {
       Reals z(p);
       for (double& value : z) value = std::log(value);
       return soft_cross_entropy(z, t, 0.2F);
     },
     true},
    {"mean_squared_error", mean_squared_error(), real_elements(ElementLoss::kSquaredError)},
    {"mean_squared_error_of_probabilities", mean_squared_error(), real_elements(ElementLoss::kSquaredError), true},
    {"mean_absolute_error", mean_absolute_error(), real_elements(ElementLoss::kAbsoluteError)},
    {"huber", huber(), real_elements(ElementLoss::kHuber)},
    {"hinge", hinge(), real_elements(ElementLoss::kHinge)},
    {"kl_divergence", kl_divergence(), real_elements(ElementLoss::kKullbackLeibler), true},
    {"cosine_similarity", cosine_similarity(), cosine_loss},
    {"cosine_similarity_of_probabilities", cosine_similarity(), cosine_loss, true},
    {"binary", binary_crossentropy(), real_elements(ElementLoss::kBinaryFromLogits)},
    {"binary_of_probabilities", binary_crossentropy({.from_logits = false}),
     real_elements(ElementLoss::kBinaryFromProbabilities), true},
    {"binary_smoothed", binary_crossentropy({.label_smoothing = 0.2F}),
     real_elements(ElementLoss::kBinaryFromLogits, 0.2)},
    {"binary_smoothed_of_probabilities", binary_crossentropy({.from_logits = false, .label_smoothing = 0.2F}),
     real_elements(ElementLoss::kBinaryFromProbabilities, 0.2), true},
    {"weighted", 0.25F * mean_squared_error(),
     [](const Reals& x, const Reals& t) { return 0.25 * element_loss(ElementLoss::kSquaredError, x, t); }},
    {"weighted_sum", 2 * categorical_crossentropy() + 0.5F * mean_squared_error() + binary_crossentropy(),
     [](const Reals& x, const Reals& t) {
       return 2 * soft_cross_entropy(x, t, 0) + 0.5 * element_loss(ElementLoss::kSquaredError, x, t) +
              element_loss(ElementLoss::kBinaryFromLogits, x, t);
     }},
    {"composed", std::make_shared<SoftenedCrossEntropy>(2.5F),
     [](Reals x, const Reals& t) {
       for (double& value : x) value /= 2.5;
       return soft_cross_entropy(x, t, 0);
     }},
    {"on_the_host", log_cosh(),
     [](const Reals& x, const Reals& t) {
       double loss = 0;
       for (std::size_t i = 0; i < x.size(); ++i) loss += std::log(std::cosh(x[i] - t[i]));
       return loss;
     }},
};

class LossTest : public testing::TestWithParam<LossCase> {};
INSTANTIATE_TEST_SUITE_P(All, LossTest, testing::ValuesIn(kLosses),
                         [](const auto& each) { return each.param.name; });

// Five examples and three rows of padding. The loss is right to about 1e-7, a difference quotient to 1e-4.
TEST_P(LossTest, TheGradientIsTheDifferenceQuotient) {
  Training training(1);
  Model model = model_of(training, GetParam());
  Loader loader(data_of(GetParam(), 5).batch({.global_batch = 8}), training.devices,
                {.epochs = 1'000'000, .threads = 1});
  Trainer trainer(training.strategy, model, loader);
  const auto loss = [&] {
    trainer.reset_metrics();
    trainer.discard_gradients();
    trainer.gradients(std::move(*trainer.take()));
    return mean_loss(trainer.finish());
  };
  for (const Variable& variable : model.state().layout.variables()) {
    loss();
    const std::vector<float> all = gradients_of(model, training.strategy);
    std::vector<float> values = model.read_variable(variable.name);
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      constexpr float kStep = 2e-3F;
      const auto moved = [&](float by) {
        std::vector<float> there = values;
        there[i] += by;
        model.write_variable(variable.name, there);
        return loss();
      };
      const double expected = (moved(kStep) - moved(-kStep)) / (2.0 * static_cast<double>(kStep));
      model.write_variable(variable.name, values);
      const double gradient = all[static_cast<std::size_t>(variable.offset) + i];
      error += (expected - gradient) * (expected - gradient);
      norm += expected * expected;
    }
    EXPECT_LE(std::sqrt(error), 0.01 * std::sqrt(norm) + 1e-4 * std::sqrt(static_cast<double>(values.size())))
        << variable.name << ", norm " << std::sqrt(norm);
    EXPECT_GT(norm, 1e-8) << variable.name;
  }
}

std::vector<Reals> labels_of(const Dataset& data) {
  DeviceGroup cpu = open_devices("cpu:1");
  Loader loader(data, cpu);
  std::vector<Reals> labels;
  while (std::optional<Batch> batch = loader.next(0)) {
    batch->ready().wait();
    const TensorView& view = batch->tensor("label");
    const std::int64_t width = view.elements() / view.shape[0];
    for (std::int64_t row = 0; row < batch->examples(); ++row) {
      Reals of_row;
      for (std::int64_t k = row * width; k < (row + 1) * width; ++k) {
        of_row.push_back(view.dtype == DType::kF32 ? static_cast<double>(view.as<float>()[k])
                                                   : static_cast<double>(view.as<std::int64_t>()[k]));
      }
      labels.push_back(of_row);
    }
  }
  return labels;
}

// Of a model that was trained a little, over an uneven tail.
TEST_P(LossTest, TheValueIsThatOfDoublePrecision) {
  const Dataset data = data_of(GetParam(), 53).batch({.global_batch = 8});
  const std::vector<Reals> labels = labels_of(data);
  for (const int replicas : {1, 3}) {
    Training training(replicas);
    Model model = model_of(training, GetParam());
    model.fit(data, {.epochs = 2, .verbose = 0});
    const Predictions predictions = model.predict(data);
    double expected = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto first = predictions.values.begin() + static_cast<std::ptrdiff_t>(i * kOutputs);
      expected += GetParam().real(Reals(first, first + kOutputs), labels[i]);
    }
    const Evaluation evaluation = model.evaluate(data);
    EXPECT_NEAR(evaluation.loss, expected / 53, 2e-6 * (1 + expected / 53) * slack());
    EXPECT_EQ(evaluation.examples, 53);
  }
}

TEST_P(LossTest, SeveralReplicasTrainAsOne) {
  const auto run = [&](int replicas, int accumulate, std::int64_t batch) {
    Training training(replicas);
    Model model = model_of(training, GetParam());
    const Dataset data = data_of(GetParam(), 53).batch({.global_batch = batch});
    const History history =
        model.fit(data, {.epochs = 3, .validation = data, .verbose = 0, .step = {.accumulate = accumulate}});
    model.check_mirrored();
    std::vector<double> seen = history["loss"];
    seen.insert(seen.end(), history["val_loss"].begin(), history["val_loss"].end());
    for (const std::vector<float>& variable : variables_of(model)) {
      seen.insert(seen.end(), variable.begin(), variable.end());
    }
    return seen;
  };
  const std::vector<double> one = run(1, 1, 21);
  EXPECT_EQ(one, run(1, 1, 21)) << "the same run, the same bits";
  EXPECT_LT(one[2], one[0]) << "the loss falls";
  for (const auto& [replicas, accumulate] : {std::pair(2, 1), std::pair(4, 1), std::pair(4, 3)}) {
    const std::vector<double> many = run(replicas, accumulate, 21 / accumulate);
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_NEAR(many[i], one[i], 2e-4 * slack()) << replicas << " replicas, number " << i;
    }
    EXPECT_EQ(many, run(replicas, accumulate, 21 / accumulate)) << "the same run, the same bits";
  }
}

class LossesTest : public testing::Test {
 protected:
  Training training_{2};
};

TEST_F(LossesTest, ASumEqualsItsTermsInAnyOtherForm) {
  const Dataset data = float_data(40, kWidth, kOutputs).dataset().batch({.global_batch = 8});
  const auto weights = [&](const Loss& loss) {
    Model model = training_.strategy.build(plain_net, {.seed = 3});
    model.compile({.optimizer = sgd(0.1F), .loss = loss, .metrics = {}});
    model.fit(data, {.epochs = 2, .verbose = 0});
    return model.weights_sha256();
  };
  const Loss loss = mean_squared_error();
  EXPECT_EQ(weights(loss), weights(1 * loss));
  EXPECT_EQ(weights(loss), weights(0.5F * loss + 0.25F * loss + 0.25F * loss));
  EXPECT_EQ(weights(2 * loss), weights(loss + loss));
  EXPECT_NE(weights(loss), weights(2 * loss));
}

// The softmax stays, its result and gradient are f32 among activations in bf16.
TEST_F(LossesTest, ProbabilitiesLearnInBf16) {
  const Net net = [](Graph& g) { return g.softmax(small_cnn(g)); };
  const Dataset data = blobs(64, {6, 6, 2}).map(one_hot(4)).batch({.global_batch = 16});
  std::vector<double> last;
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    Model model = training_.strategy.build(net, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .loss = mean_squared_error(), .precision = precision});
    const History history = model.fit(data, {.epochs = 6, .verbose = 0});
    EXPECT_LT(history["loss"].back(), 0.8 * history["loss"].front());
    last.push_back(history["loss"].back());
  }
  EXPECT_NEAR(last[0], last[1], 0.02) << "one net, two precisions";
}

TEST_F(LossesTest, ARegressionOfOneNumberTakesScalarLabelsAndOtherFields) {
  const auto data = float_data(200, 4, 0);
  const Net net = [](Graph& g) { return g.dense(g.input("image", {4}), 1, {.name = "angle"}); };
  Model model = training_.strategy.build(net, {.seed = 3});
  model.compile({.optimizer = adam(2e-2F),
                 .loss = mean_squared_error().against("steering").of("angle"),
                 .metrics = {mean_absolute_error()}});
  const History history =
      model.fit(data.dataset("steering").shuffle().batch({.global_batch = 32}), {.epochs = 60, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 1e-3) << "a mean of two inputs is linear";
  EXPECT_LT(history["mean_absolute_error"].back(), 0.04);
}

TEST_F(LossesTest, BinaryCrossEntropyTakesClassNumbers) {
  Philox random({.seed = 9});
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 200; ++i) {
    images.push_back(random.uniform());
    images.push_back(random.uniform());
    labels.push_back(images[images.size() - 2] > images.back());
  }
  Model model = training_.strategy.build([](Graph& g) { return g.dense(g.input("image", {2}), 1); }, {.seed = 3});
  model.compile({.optimizer = adam(0.1F), .loss = binary_crossentropy(), .metrics = {}});
  const History history =
      model.fit(labelled({2}, images, labels).batch({.global_batch = 20}), {.epochs = 30, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 0.2);
}

TEST_F(LossesTest, WhatDoesNotFitIsRefusedBeforeTheFirstStep) {
  Model model = training_.strategy.build(plain_net);
  const auto compile = [&](const Loss& loss, const std::vector<Metric>& metrics = {}) {
    return message_of([&] { model.compile({.loss = loss, .metrics = metrics}); });
  };
  EXPECT_THAT(compile(categorical_crossentropy({.from_logits = false})), HasSubstr("is no softmax"));
  EXPECT_THAT(compile(mean_squared_error().of("tail")), AllOf(HasSubstr("'tail'"), HasSubstr("'dense_1'")));
  EXPECT_THAT(compile(Loss{}), HasSubstr("no terms"));
  EXPECT_THAT(compile(categorical_crossentropy(), {top_k(9)}), AllOf(HasSubstr("top_9"), HasSubstr("(3,)")));
  EXPECT_THAT(compile(categorical_crossentropy(), {accuracy(), accuracy()}), HasSubstr("two metrics"));
  EXPECT_THAT(message_of([] { return -1 * mean_squared_error(); }), HasSubstr("positive"));
  EXPECT_THAT(message_of([] { return mean_squared_error() + mean_squared_error({.reduction = Reduction::kSum}); }),
              HasSubstr("reduction"));
  EXPECT_THAT(message_of([] { return Metric(mean_squared_error() + mean_absolute_error()); }),
              HasSubstr("one loss"));
  EXPECT_THROW(categorical_crossentropy({.label_smoothing = -0.1F}), ConfigError);
  EXPECT_THROW(binary_crossentropy({.label_smoothing = 1}), ConfigError);
  EXPECT_THROW(top_k(0), ConfigError);

  Model probabilities = training_.strategy.build(softmax_net);
  EXPECT_THAT(
      message_of([&] {
        probabilities.compile({.loss = categorical_crossentropy({.from_logits = false}) + mean_squared_error()});
      }),
      HasSubstr("logits of the softmax"));
  const auto fit = [&](const Loss& loss, const Dataset& data) {
    model.compile({.loss = loss, .metrics = {}});
    return message_of([&] { model.fit(data.batch({.global_batch = 4}), {.verbose = 0}); });
  };
  const Dataset numbers = blobs(8, {kWidth}, 3), shares = float_data(8, kWidth, 3).dataset();
  EXPECT_THAT(fit(cosine_similarity(), numbers), AllOf(HasSubstr("cosine_similarity"), HasSubstr("float32")));
  EXPECT_THAT(fit(categorical_crossentropy(), numbers), AllOf(HasSubstr("int64"), HasSubstr("one_hot()")));
  EXPECT_THAT(fit(sparse_categorical_crossentropy(), shares),
              AllOf(HasSubstr("float32"), HasSubstr("(3,)"), HasSubstr("categorical_crossentropy()")));
  EXPECT_THAT(fit(mean_squared_error(), float_data(8, kWidth, 2).dataset()),
              AllOf(HasSubstr("(2,)"), HasSubstr("(3,)")));
  EXPECT_THAT(fit(mean_squared_error().against("angle"), shares), HasSubstr("'angle'"));
}

TEST_F(LossesTest, AFloatLabelThatIsNoNumberEndsTheFit) {
  FloatData data = float_data(40, kWidth, kOutputs);
  data.labels[20 * kOutputs] = std::numeric_limits<float>::quiet_NaN();
  Model model = training_.strategy.build(plain_net);
  model.compile({.loss = mean_squared_error(), .metrics = {}});
  EXPECT_THAT(message_of<Error>([&] { model.fit(data.dataset().batch({.global_batch = 8}), {.verbose = 0}); }),
              AllOf(HasSubstr("not a finite number"), HasSubstr("step 2")));
}

// A user's loss that gives a mean of its batch, or forgets its sums.
class WrongLoss final : public LossFunction {
 public:
  explicit WrongLoss(bool scalar) : scalar_(scalar) {}

  std::string name() const override { return "wrong"; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field&) const override {}
  ScratchSpec scratch(const TensorView&, const TensorView&) const override {
    return {.device = {{nullptr, Shape{}, DType::kF32}}};
  }
  void submit(const LossCall& call) const override {
    if (scalar_) call.kernels.add_losses(call.stream, {call.device_scratch[0], call.scalars, call.sums});
  }

 private:
  bool scalar_;
};

TEST_F(LossesTest, AScalarLossAndOneThatCountsNothingAreRefused) {
  const Dataset data = float_data(40, kWidth, kOutputs).dataset().batch({.global_batch = 8});
  Model model = training_.strategy.build(plain_net);
  model.compile({.loss = std::make_shared<WrongLoss>(true), .metrics = {}});
  EXPECT_THAT(message_of([&] { model.fit(data, {.verbose = 0}); }), HasSubstr("one number an example"));
  model.compile({.loss = std::make_shared<WrongLoss>(false), .metrics = {}});
  EXPECT_THAT(message_of<Error>([&] { model.fit(data, {.verbose = 0}); }),
              AllOf(HasSubstr("'wrong'"), HasSubstr("did not count")));
}

TEST_F(LossesTest, AnExceptionOfAHostLossEndsTheRunWithItsText) {
  const Dataset data = float_data(40, kWidth, kOutputs).dataset().batch({.global_batch = 8});
  Model model = training_.strategy.build(plain_net);
  model.compile(
      {.loss = host_loss("picky",
                         [](const HostExample&) -> double { throw ConfigError("I do not like this example"); }),
       .metrics = {}});
  EXPECT_THAT(message_of<Error>([&] { model.fit(data, {.verbose = 0}); }),
              HasSubstr("I do not like this example"));
}

TEST(AverageLoss, DividesByTheGlobalBatchAndRefusesANumber) {
  std::vector<float> losses{1, 2, 4.5F};
  EXPECT_DOUBLE_EQ(compute_average_loss(losses, 10), 0.75);
  EXPECT_DOUBLE_EQ(compute_average_loss(TensorView{losses.data(), {3}, DType::kF32}, 10), 0.75);
  EXPECT_EQ(compute_average_loss(std::span<const float>(), 0), 0);
  EXPECT_THROW(compute_average_loss(losses, 2), ConfigError);
  EXPECT_THROW(compute_average_loss(TensorView{losses.data(), Shape{}, DType::kF32}, 10), ConfigError);
  EXPECT_THAT(error_of<ConfigError>([&] { compute_average_loss(2.5, 10); }).what(),
              HasSubstr("one loss an example"));
}

}  // namespace
}  // namespace headrace::test
