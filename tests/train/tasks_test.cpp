// What a net's results are follows from the loss and the last layer; metrics count by it, and what does not fit is
// refused.
#include "headrace/tests/train/score_fixture.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kTaskExamples = 61, kTaskFeatures = 5, kLabels = 3;

// Labels that follow roughly from sums of features, of so many outputs.
struct Data {
  std::vector<float> x, shares;
  std::vector<std::int64_t> numbers;

  explicit Data(std::int64_t outputs) {
    Philox random({.seed = 11});
    for (std::int64_t i = 0; i < kTaskExamples; ++i) {
      for (int k = 0; k < kTaskFeatures; ++k) x.push_back(2 * random.uniform() - 1);
      for (std::int64_t c = 0; c < outputs; ++c) {
        const float sum = x[x.size() - 1 - static_cast<std::size_t>(c)] + 1.2F * (random.uniform() - 0.5F);
        shares.push_back(sum > 0 ? 1.0F : 0.0F);
        numbers.push_back(sum > 0 ? 1 : 0);
      }
    }
  }
  template <typename Label>
  Dataset dataset(const std::vector<Label>& labels, const Shape& shape) const {
    return Dataset::from(in_memory("tasks", static_cast<std::size_t>(kTaskExamples),
                                   {array_of("image", Shape{kTaskFeatures}, x), array_of("label", shape, labels)}))
        .batch({.global_batch = 16});
  }
};

enum class End { kLogits, kSigmoid, kSigmoidBehindViews, kSoftmax };

Net net_ending(std::int64_t outputs, End end) {
  return [=](Graph& g) {
    const Node x = g.dense(g.input("image", {kTaskFeatures}), static_cast<int>(outputs), {.name = "out"});
    if (end == End::kLogits) return x;
    if (end == End::kSoftmax) return g.softmax(x);
    return end == End::kSigmoid ? g.sigmoid(x) : g.dropout(g.flatten(g.sigmoid(x)), 0.5F);
  };
}

double metric(const Evaluation& of, const std::string& name) { return find_metric(of.metrics, name)->number(); }

// The share of labels that are right, by label or of all.
double share_right(const std::vector<float>& logits, const std::vector<float>& labels) {
  double right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += (logits[i] > 0) == (labels[i] > 0) ? 1 : 0;
  return right / static_cast<double>(labels.size());
}

// However the net ends, the same logits have the same figures: those of each label by itself.
TEST(Tasks, BinaryAndMultiLabelMetricsAreOfEachLabelByItself) {
  for (const std::int64_t outputs : {std::int64_t{1}, kLabels}) {
    const Data data(outputs);
    std::vector<Dataset> sets{data.dataset(data.shares, Shape{outputs}),
                              data.dataset(data.numbers, Shape{outputs})};
    if (outputs == 1) {
      sets.push_back(data.dataset(data.numbers, Shape{}));
      sets.push_back(data.dataset(data.shares, Shape{}));
    }
    std::vector<double> expected;
    for (const End end : {End::kLogits, End::kSigmoid, End::kSigmoidBehindViews}) {
      for (const int replicas : {1, 2}) {
        for (const Dataset& set : sets) {
          Training training(replicas);
          Model model = training.strategy.build(net_ending(outputs, end), {.seed = 3});
          std::vector<Metric> metrics{
              accuracy(),  binary_accuracy(),           auc(),     auc({.curve = AucCurve::kPrecisionRecall}),
              precision(), recall({.threshold = 0.5F}), f1_score()};
          if (outputs == 1) metrics.push_back(confusion_matrix());
          model.compile({.optimizer = adam(0.05F),
                         .loss = binary_crossentropy({.from_logits = end == End::kLogits}),
                         .metrics = metrics});
          EXPECT_EQ(model.tasks().front().task,
                    (ResultTask{outputs == 1 ? Task::kBinary : Task::kMultiLabel, end == End::kLogits}));
          EXPECT_THAT(model.summary(), AllOf(HasSubstr(outputs == 1 ? "binary, from" : "multi_label, from"),
                                             HasSubstr("the loss is binary_crossentropy")));
          std::vector<float> weights(static_cast<std::size_t>(outputs * kTaskFeatures));
          for (std::int64_t c = 0; c < outputs; ++c) {
            weights[static_cast<std::size_t>(c * kTaskFeatures + kTaskFeatures - 1 - c)] = 2;
          }
          model.write_variable("out/weights", weights);
          const Evaluation seen = model.evaluate(set);
          std::vector<float> logits = model.predict(set).values;
          if (end != End::kLogits) {
            for (float& value : logits) value -= 0.5F;
          }
          EXPECT_EQ(metric(seen, "accuracy"), share_right(logits, data.shares));
          EXPECT_EQ(metric(seen, "binary_accuracy"), share_right(logits, data.shares));
          EXPECT_EQ(seen.accuracy, share_right(logits, data.shares));
          EXPECT_GT(metric(seen, "auc"), 0.7);
          std::vector<double> figures;
          for (const MetricValue& each : seen.metrics) {
            figures.insert(figures.end(), each.values.begin(), each.values.end());
          }
          if (expected.empty()) expected = figures;
          EXPECT_THAT(figures, Pointwise(DoubleNear(1e-6), expected));
          if (outputs > 1) continue;
          double found = 0, positive = 0;
          for (std::size_t i = 0; i < data.shares.size(); ++i) {
            positive += data.numbers[i] == 1;
            found += data.numbers[i] == 1 && logits[i] > 0;
          }
          const auto& matrix = find_metric(seen.metrics, "confusion_matrix")->values;
          EXPECT_EQ(matrix[2] + matrix[3], positive);
          EXPECT_EQ(matrix[3], found);
          EXPECT_EQ(metric(seen, "recall"), found / positive);
          EXPECT_EQ(metric(seen, "precision"), found / (matrix[1] + matrix[3]));
        }
      }
    }
  }
}

// Of two classes the largest decides, and averages are of both.
TEST(Tasks, TwoClassesAreTwo) {
  const Data data(1);
  Training training(2);
  Model model = training.strategy.build(net_ending(2, End::kSoftmax), {.seed = 3});
  model.compile({.optimizer = adam(0.05F),
                 .loss = sparse_categorical_crossentropy({.from_logits = false}),
                 .metrics = {precision({.average = Average::kNone}), recall(), confusion_matrix()}});
  model.fit(data.dataset(data.numbers, Shape{}), {.epochs = 3, .verbose = 0});
  const Evaluation seen = model.evaluate(data.dataset(data.numbers, Shape{}));
  const auto& matrix = find_metric(seen.metrics, "confusion_matrix")->values;
  EXPECT_THAT(find_metric(seen.metrics, "precision")->values,
              ElementsAre(matrix[0] / (matrix[0] + matrix[2]), matrix[3] / (matrix[1] + matrix[3])));
  EXPECT_DOUBLE_EQ(metric(seen, "recall"),
                   (matrix[0] / (matrix[0] + matrix[1]) + matrix[3] / (matrix[2] + matrix[3])) / 2);
}

TEST(Tasks, WeightsAndHingeAndTheStepsCountAlike) {
  const Data data(1);
  Training training(1);
  std::vector<std::int64_t> signs;
  for (const std::int64_t number : data.numbers) signs.push_back(2 * number - 1);
  Model model = training.strategy.build(net_ending(1, End::kLogits), {.seed = 3});
  model.compile({.optimizer = sgd(0.0F), .loss = hinge(), .metrics = {accuracy(), recall()}});
  const Dataset labelled = data.dataset(signs, Shape{});
  const double right = share_right(model.predict(labelled).values, data.shares);
  const Evaluation seen = model.evaluate(labelled);
  EXPECT_EQ(metric(seen, "accuracy"), right);
  model.compile({.optimizer = sgd(0.0F), .loss = binary_crossentropy(), .metrics = {accuracy(), recall()}});
  const Evaluation same = model.evaluate(data.dataset(data.numbers, Shape{}));
  EXPECT_EQ(metric(seen, "recall"), metric(same, "recall")) << "-1 is not 1";
  EXPECT_EQ(model.fit(data.dataset(data.numbers, Shape{}), {.verbose = 0})["accuracy"][0], right);

  const std::vector<float> classes{1, 3};
  double hits = 0, all = 0;
  const std::vector<float> logits = model.predict(labelled).values;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto weight = static_cast<double>(classes[static_cast<std::size_t>(data.numbers[i])]);
    all += weight;
    hits += (logits[i] > 0) == (data.numbers[i] == 1) ? weight : 0;
  }
  model.compile({.optimizer = sgd(0.0F), .loss = binary_crossentropy(), .metrics = {accuracy().weighted()}});
  const History history = model.fit(data.dataset(data.numbers, Shape{}), {.verbose = 0, .class_weight = classes});
  EXPECT_DOUBLE_EQ(history["weighted_accuracy"][0], hits / all);
}

struct Fit {
  std::string name;
  std::int64_t outputs;
  End end;
  Loss loss;
  std::string task;  // or what a refusal of the loss says
  bool classes;      // accuracy() fits
};

std::ostream& operator<<(std::ostream& out, const Fit& each) { return out << each.name; }

const CrossEntropyOptions kProbabilities{.from_logits = false};
const BinaryCrossEntropyOptions kSigmoids{.from_logits = false};

const Fit kFits[] = {
    {"categorical", 3, End::kLogits, sparse_categorical_crossentropy(), "categorical, from logits", true},
    {"softmax", 3, End::kSoftmax, categorical_crossentropy(kProbabilities), "categorical, from probabilities",
     true},
    {"softmax_twice", 3, End::kSoftmax, categorical_crossentropy(), "gives probabilities", false},
    {"sigmoids_as_logits", 3, End::kSigmoid, sparse_categorical_crossentropy(), "gives probabilities", false},
    {"sigmoid_twice", 1, End::kSigmoid, binary_crossentropy(), "gives probabilities", false},
    {"sigmoid_twice_hidden", 1, End::kSigmoidBehindViews, binary_crossentropy(), "gives probabilities", false},
    {"numbers_as_probabilities", 1, End::kLogits, binary_crossentropy(kSigmoids), "gives any numbers", false},
    {"divergence_of_numbers", 3, End::kLogits, kl_divergence(), "gives any numbers", false},
    {"hinge_of_probabilities", 1, End::kSigmoid, hinge(), "gives probabilities", false},
    {"one_class", 1, End::kLogits, sparse_categorical_crossentropy(), "binary_crossentropy() is the loss", false},
    {"squares", 3, End::kLogits, mean_squared_error(), "regression", false},
    {"squares_of_sigmoid", 1, End::kSigmoid, mean_squared_error(), "regression", false},
    {"squares_of_softmax", 3, End::kSoftmax, mean_squared_error(), "categorical, from probabilities", true},
    {"binary_of_softmax", 3, End::kSoftmax, binary_crossentropy(kSigmoids), "categorical, from probabilities",
     true},
    {"squares_said", 1, End::kSigmoid, mean_squared_error().for_task(Task::kBinary), "binary, from probabilities",
     true},
    {"one_against_the_rest", 3, End::kLogits, binary_crossentropy().for_task(Task::kCategorical),
     "categorical, from logits", true},
    {"custom", 3, End::kLogits, log_cosh(), "", false},
    {"custom_of_softmax", 3, End::kSoftmax, log_cosh(), "categorical, from probabilities", true},
    {"custom_said", 3, End::kLogits, log_cosh().for_task(Task::kMultiLabel, true), "multi_label, from logits",
     true},
    {"custom_half_said", 3, End::kLogits, log_cosh().for_task(Task::kMultiLabel), "logits or probabilities",
     false},
    {"said_wrong", 3, End::kLogits, log_cosh().for_task(Task::kBinary, true), "gives (3,)", false},
    {"contradicted", 3, End::kLogits, categorical_crossentropy().for_task(Task::kMultiLabel), "are categorical",
     false},
    {"contradicted_form", 1, End::kSigmoid, mean_squared_error().for_task(Task::kBinary, true),
     "gives probabilities", false},
    {"with_a_penalty", 3, End::kLogits, categorical_crossentropy() + log_cosh() + mean_squared_error(),
     "categorical, from logits", true},
    {"of_two_minds", 3, End::kLogits, categorical_crossentropy() + binary_crossentropy(), "", false},
};

class TaskTest : public testing::TestWithParam<Fit> {};
INSTANTIATE_TEST_SUITE_P(All, TaskTest, testing::ValuesIn(kFits),
                         [](const auto& each) { return each.param.name; });

TEST_P(TaskTest, IsSaidOrRefusedByCompile) {
  const Fit& fit = GetParam();
  Training training(1);
  Model model = training.strategy.build(net_ending(fit.outputs, fit.end));
  const auto refusal = [&](const std::vector<Metric>& metrics) -> std::string {
    return message_of([&] { model.compile({.loss = fit.loss, .metrics = metrics}); });
  };
  const std::string refused = refusal({});
  if (!refused.empty()) {
    EXPECT_THAT(refused, HasSubstr(fit.task.empty() ? "no refusal" : fit.task));
    return;
  }
  const auto task = model.tasks().front().task;
  EXPECT_EQ(task ? to_text(*task) : "", fit.task);
  for (const Metric& each : {accuracy(), precision(), auc()}) {
    const std::string why = fit.classes ? "" : task ? "are regression" : "nothing says it";
    EXPECT_THAT(refusal({each}), HasSubstr(why));
    EXPECT_EQ(refusal({each}).empty(), fit.classes);
  }
  const bool categorical = task && task->task == Task::kCategorical;
  EXPECT_EQ(refusal({top_k(1)}).empty(), categorical);
  EXPECT_EQ(refusal({binary_accuracy()}).empty(), fit.classes && !categorical);
  EXPECT_EQ(refusal({confusion_matrix()}).empty(), categorical || (task && task->task == Task::kBinary));
}

// A record knows the task that was said; predictions are by it.
TEST(Tasks, AreInRecordsAndPredictions) {
  const Data data(1);
  const Dataset labelled = data.dataset(data.numbers, Shape{});
  const TempFolder folder;
  Training training(1);
  Model model = training.strategy.build(net_ending(1, End::kLogits), {.seed = 3});
  EXPECT_EQ(model.predict(labelled).task, std::nullopt);
  model.compile({.loss = log_cosh().for_task(Task::kBinary, true), .metrics = {accuracy()}});
  save_model(model, folder / "model.safetensors");
  const Model again = restore_model(training.strategy, folder / "model.safetensors", {.losses = {log_cosh()}});
  EXPECT_EQ(again.tasks().front().task, (ResultTask{Task::kBinary, true}));
  model.compile({.loss = binary_crossentropy()});
  save_model(model, folder / "model.safetensors");
  Predictions found = predict_record(training.strategy, folder / "model.safetensors", labelled);
  const double right = share_right(found.values, data.shares);
  const Classification classified = classify(found, *labelled.source());
  EXPECT_EQ(static_cast<double>(classified.count(0, 0) + classified.count(1, 1)) / kTaskExamples, right);
  double loss = 0;
  for (const ClassifiedExample& each : classify(found, *labelled.source(), kTaskExamples).worst) loss += each.loss;
  EXPECT_NEAR(loss / kTaskExamples, model.evaluate(labelled).loss, 1e-6);
  for (std::size_t i = 0; i < found.values.size(); ++i) EXPECT_EQ(predicted_class(found, i), found.values[i] > 0);
  found.task = ResultTask{Task::kMultiLabel, true};
  EXPECT_EQ(predicted_class(found, 0), std::nullopt);
  EXPECT_THROW(classify(found, *labelled.source()), ConfigError);
}

TEST(Tasks, ClassWeightsAreOfClasses) {
  Training training(1);
  for (const Loss& loss : {binary_crossentropy(), mean_squared_error(), log_cosh()}) {
    Model model = training.strategy.build(net_ending(3, End::kLogits));
    EXPECT_THROW(model.compile({.loss = loss.class_weighted({1, 2, 3}), .metrics = {}}), ConfigError);
  }
}

}  // namespace
}  // namespace headrace::test
