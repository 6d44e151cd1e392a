// NanPolicy::kTrace: which operation made the first number that is not finite.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

class NanTraceTest : public testing::TestWithParam<int> {
 protected:
  Model made(const Net& net, const CompileOptions& options = {.optimizer = sgd(0.1F)}) {
    Model model = training_.strategy.build(net, {.seed = 3});
    model.compile(options);
    return model;
  }

  template <typename Thrown = Error>
  std::string message_of_fit(Model& model, const Dataset& data, int accumulate = 1) {
    return message_of<Thrown>(
        [&] { model.fit(data, {.verbose = 0, .step = {.accumulate = accumulate, .nan = NanPolicy::kTrace}}); });
  }

  void set(Model& model, const std::string& name, std::size_t at, float value) {
    std::vector<float> values = model.read_variable(name);
    values.at(at) = value;
    model.write_variable(name, values);
  }

  Training training_{GetParam()};
};

TEST_P(NanTraceTest, ChangesNoWeights) {
  const Dataset data = blobs(50, {6, 6, 2}).shuffle().batch({.global_batch = 8});
  for (const auto& [accumulate, shards] : {std::pair(1, 0), std::pair(3, 0), std::pair(1, 4), std::pair(3, 4)}) {
    for (const Net& net : {Net(small_cnn), Net(norm_cnn)}) {
      std::vector<std::string> hashes;
      std::vector<double> losses;
      for (const NanPolicy nan : {NanPolicy::kStop, NanPolicy::kTrace}) {
        Model model = made(net, {.optimizer = with_all_around(adam(1e-2F))});
        const History history = model.fit(
            data,
            {.epochs = 2, .verbose = 0, .step = {.accumulate = accumulate, .virtual_shards = shards, .nan = nan}});
        EXPECT_EQ(model.global_step(), accumulate == 1 ? 14U : 6U);
        hashes.push_back(model.weights_sha256());
        losses.push_back(history["loss"].back());
      }
      EXPECT_EQ(hashes[0], hashes[1]) << accumulate << " batches a step, " << shards << " shards";
      EXPECT_EQ(losses[0], losses[1]);
    }
  }
}

TEST_P(NanTraceTest, ANumberOfTheDataNamesItsFieldAndRecord) {
  std::vector<float> images(40 * 8, 0.5F);
  images[17 * 8 + 3] = kNan;
  const Dataset data = labelled({8}, images, std::vector<std::int64_t>(40, 1)).batch({.global_batch = 8});
  for (const int accumulate : {1, 3}) {
    Model model = made(small_mlp);
    const std::string message = message_of_fit<DataError>(model, data, accumulate);
    EXPECT_THAT(message, AllOf(HasSubstr("field 'image'"), HasSubstr("record 17"), HasSubstr("nan"),
                               HasSubstr("batch 2 of pass 0"), HasSubstr(accumulate == 1 ? "step 2" : "step 0")));
  }
}

TEST_P(NanTraceTest, AWeightIsNamed) {
  Model model = made(small_mlp);
  set(model, "dense_1/weights", 5, kNan);
  EXPECT_THAT(message_of_fit(model, blobs(40).batch({.global_batch = 8})),
              AllOf(HasSubstr("variable 'dense_1/weights'"), HasSubstr("element 5 of shape (4, 16)"),
                    HasSubstr("step 0"), Not(HasSubstr("record"))));
}

// Finite weights and inputs, of which the first product is beyond f32, on the second replica where there are two.
TEST_P(NanTraceTest, AnOverflowForwardNamesLayerAndShape) {
  std::vector<float> images(40 * 8, 0.0F);
  images[15 * 8] = 1e10F;
  const Dataset data = labelled({8}, images, std::vector<std::int64_t>(40, 1)).batch({.global_batch = 16});
  Model model = made([](Graph& g) { return g.dense(g.dense(g.input("image", {8}), 16), 4); });
  std::vector<float> weights(16 * 8, 0.0F);
  weights[8 * 2] = kMax;
  model.write_variable("dense/weights", weights);
  const int replicas = GetParam();
  EXPECT_THAT(
      message_of_fit(model, data),
      AllOf(HasSubstr("the result of layer 'dense' (dense)"), HasSubstr("inf"), HasSubstr("record 15"),
            HasSubstr("replica " + std::to_string(replicas - 1)), HasSubstr(", 16)"), HasSubstr("step 0")));
}

TEST_P(NanTraceTest, AnOverflowBackwardNamesTheLayer) {
  Model model = made([](Graph& g) {
    const Node x = g.dense(g.input("image", {8}), 4, {.name = "before"});
    return g.scale(g.scale(x, 1e30F, {.name = "inner"}), 1e30F, {.name = "outer"});
  });
  model.write_variable("before/weights", std::vector<float>(4 * 8, 0.0F));
  EXPECT_THAT(message_of_fit(model, blobs(40).batch({.global_batch = 8})),
              AllOf(HasSubstr("layer 'inner' (scale) gives, in the backward pass, for 'before'"),
                    HasSubstr("record 0"), HasSubstr("step 0")));
}

// A custom loss that takes the logarithm of what is 0, with a gradient that is not finite, or is.
TEST_P(NanTraceTest, ALogarithmOfZeroIsTheLosss) {
  const auto data = [&] {
    std::vector<float> images(40 * 8, 1.0F);
    for (std::size_t i = 21 * 8; i < 22 * 8; ++i) images[i] = 0;
    return labelled({8}, images, std::vector<std::int64_t>(40, 1)).batch({.global_batch = 8});
  }();
  for (const bool finite_gradient : {false, true}) {
    const Loss loss = host_loss("my_log", [finite_gradient](const HostExample& example) {
      const double x = static_cast<double>(example.result[0]);
      for (float& slope : example.gradient) slope = 0;
      if (!example.gradient.empty() && !finite_gradient) example.gradient[0] = static_cast<float>(-1 / x);
      return -std::log(x);
    });
    Model model = made([](Graph& g) { return g.dense(g.input("image", {8}), 4, {.bias = false}); },
                       {.optimizer = sgd(0.0F), .loss = loss, .metrics = {}});
    model.write_variable("dense/weights", std::vector<float>(4 * 8, 0.125F));
    const std::string message = message_of_fit(model, data);
    EXPECT_THAT(message, AllOf(HasSubstr("the loss 'my_log'"), HasSubstr("step 2")));
    if (finite_gradient) {
      EXPECT_THAT(message, HasSubstr("of results that are"));
    } else {
      EXPECT_THAT(message, AllOf(HasSubstr("the gradient of the loss"), HasSubstr("record 21")));
    }
  }
}

TEST_P(NanTraceTest, ALabelThatIsNoClassIsNamedAsEver) {
  std::vector<std::int64_t> labels(40, 1);
  labels[30] = 4;
  Model model = made(small_mlp);
  const Dataset data = labelled({8}, std::vector<float>(40 * 8, 0.5F), labels).batch({.global_batch = 8});
  EXPECT_THAT(message_of_fit<DataError>(model, data), AllOf(HasSubstr("label 4"), HasSubstr("record 30")));
}

TEST_P(NanTraceTest, AnUpdateThatOverflowsIsNamed) {
  Model model = made(small_mlp, {.optimizer = sgd(kMax),
                                 .loss = sparse_categorical_crossentropy({.reduction = Reduction::kSum})});
  EXPECT_THAT(
      message_of_fit(model, blobs(40).batch({.global_batch = 8})),
      AllOf(HasSubstr("variable 'dense"), HasSubstr("in step 0 are finite, their sum or the update is not")));
}

// With activations and weights of products in bf16, where the device stores them so (its CPU twin does).
TEST_P(NanTraceTest, AnOverflowOfBf16) {
  Training training("twin", GetParam());
  Model model = training.strategy.build([](Graph& g) { return g.dense(g.dense(g.input("image", {8}), 16), 4); },
                                        {.seed = 3});
  model.compile({.optimizer = sgd(0.1F), .precision = Precision::kBF16});
  std::vector<float> weights(16 * 8, 0.0F);
  weights[0] = kMax;  // rounds to infinity
  model.write_variable("dense/weights", weights);
  EXPECT_THAT(message_of_fit(model, blobs(40).batch({.global_batch = 8})),
              AllOf(HasSubstr("'dense/weights', rounded to bf16, "), HasSubstr("inf")));

  std::vector<float> images(40 * 8, 0.0F);
  images[7 * 8] = kMax;
  model.write_variable("dense/weights", std::vector<float>(16 * 8, 0.0F));
  EXPECT_THAT(message_of_fit<DataError>(
                  model, labelled({8}, images, std::vector<std::int64_t>(40, 1)).batch({.global_batch = 8})),
              AllOf(HasSubstr("field 'image'"), HasSubstr("record 7")));
}

// Several of which a replica computes, in memory that they share.
TEST_P(NanTraceTest, WithVirtualShards) {
  std::vector<float> images(40 * 8, 0.5F);
  images[21 * 8 + 3] = kNan;
  const Dataset data = labelled({8}, images, std::vector<std::int64_t>(40, 1)).batch({.global_batch = 8});
  Model model = made(small_mlp);
  EXPECT_THAT(error_of<DataError>([&] {
                model.fit(data, {.verbose = 0, .step = {.virtual_shards = 8, .nan = NanPolicy::kTrace}});
              }).what(),
              AllOf(HasSubstr("field 'image'"), HasSubstr("record 21"), HasSubstr("step 2"),
                    HasSubstr("replica " + std::to_string(GetParam() - 1))));
}

INSTANTIATE_TEST_SUITE_P(R, NanTraceTest, testing::Values(1, 2));

// The pieces of a custom loop are looked at, too.
TEST(NanTrace, TheStepInPiecesIsTraced) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  Loader loader(blobs(40).batch({.global_batch = 8}), training.devices);
  Trainer trainer(training.strategy, model, loader, {.step = {.nan = NanPolicy::kTrace}});
  trainer.gradients(*trainer.take());
  trainer.all_reduce();
  trainer.apply_gradients();
  model.write_variable("dense_1/bias", std::vector<float>(4, kNan));
  EXPECT_THAT(error_of([&] { trainer.gradients(*trainer.take()); }).what(),
              AllOf(HasSubstr("variable 'dense_1/bias'"), HasSubstr("step 1")));
}

}  // namespace
}  // namespace headrace::test
