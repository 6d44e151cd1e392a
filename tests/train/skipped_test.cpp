// Records that are skipped weigh nothing: not in a gradient, not in the loss, not in the accuracy.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

constexpr float kRotten = 99;
const ErrorPolicy kSkip{.on_error = OnError::kSkip, .max_bad_share = 1};

// 40 records; with `rotten` ones, every fifth more is one that cannot be used.
Dataset records_with(bool rotten) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 1});
  for (std::int64_t i = 0; i < 40; ++i) {
    if (rotten && i % 4 == 1) {
      images.insert(images.end(), 8, kRotten);
      labels.push_back(0);
    }
    labels.push_back(i % 4);
    for (std::int64_t k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  UserMap inspect{.name = "inspect", .output = {.dtype = DType::kF32, .shape = {8}}};
  inspect.function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
    float first = 0;
    std::memcpy(&first, in.data(), sizeof first);
    if (first == kRotten) throw std::runtime_error("rotten");
    std::memcpy(out.data(), in.data(), out.size());
  };
  return labelled({8}, images, labels).map(user_map(std::move(inspect))).batch({.global_batch = rotten ? 10 : 8});
}

TEST(Skipped, TrainsAsIfTheyHadNeverBeen) {
  for (const int replicas : {1, 3}) {
    for (const int accumulate : {1, 2}) {
      const auto run = [&](bool rotten, std::vector<float>& weights) {
        Training training(replicas);
        Model model = compiled(training.strategy, small_mlp);
        const Dataset from = records_with(rotten);
        History history = model.fit(from, {.epochs = 3,
                                           .validation = from,
                                           .verbose = 0,
                                           .input = {.threads = 2, .errors = kSkip},
                                           .step = {.accumulate = accumulate}});
        weights = model.read_variable(model.variable_names().front());
        const Evaluation test = model.evaluate(from, {.input = {.errors = kSkip}});
        EXPECT_EQ(test.examples, 40);
        return history;
      };
      std::vector<float> with, without;
      const History rotten = run(true, with), good = run(false, without);
      for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        for (const char* figure : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
          EXPECT_NEAR(rotten[figure][epoch], good[figure][epoch], 1e-5 * slack())
              << figure << " of epoch " << epoch;
        }
      }
      for (std::size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 1e-5 * slack()) << i;
    }
  }
}

TEST(Skipped, AnEpochOfNothingElseIsAnErrorAndChangesNothing) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp, sgd(0.1F));
  const Dataset rotten = labelled({8}, std::vector<float>(64, kRotten), std::vector<std::int64_t>(8, 1))
                             .map(user_map({.name = "never",
                                            .output = {.dtype = DType::kF32, .shape = {8}},
                                            .function = [](auto&&...) { throw std::runtime_error("rotten"); }}))
                             .batch({.global_batch = 4});
  const std::string before = model.weights_sha256();
  EXPECT_THROW(model.fit(rotten, {.verbose = 0, .input = {.errors = kSkip}}), DataError);
  EXPECT_EQ(model.weights_sha256(), before);
  EXPECT_THROW(model.evaluate(rotten, {.input = {.errors = kSkip}}), DataError);
  // Nor is a part of an epoch.
  EXPECT_THROW(model.fit(rotten, {.steps_per_epoch = 1, .verbose = 0, .input = {.errors = kSkip}}), Error);
  EXPECT_THROW(model.evaluate(rotten, {.steps = 1, .input = {.errors = kSkip}}), Error);
}

}  // namespace
}  // namespace headrace::test
