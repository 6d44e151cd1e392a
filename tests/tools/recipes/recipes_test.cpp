#include "headrace/tools/recipes/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::tools {
namespace {

using ::testing::HasSubstr;

class Recipes : public ::testing::Test {
 protected:
  Recipes() {
    test::write_cifar(cifar_);
    test::write_digits(digits_, 10'300);
  }

  RecipeOptions options_for(const std::string& name) const {
    const bool digits = name == "mnist-mlp" || name == "fashion-mnist";
    return {.data = digits ? digits_.path() : cifar_.path(), .global_batch = digits ? 64 : 8};
  }

  test::TempFolder cifar_, digits_;
};

TEST_F(Recipes, ThoseForSpeedHaveTunedPlans) {
  for (const std::string& name : recipe_names()) {
    EXPECT_EQ(make_recipe(name, options_for(name)).tuned_plans, name.starts_with("cifar10-fast")) << name;
  }
}

// A rate that falls to 0 does so at the last step, whatever makes steps of the data.
TEST_F(Recipes, SchedulesEndWithTheFit) {
  struct Length {
    int epochs = 0;
    std::uint64_t steps_per_epoch = 0;
    int accumulate = 1;
  };
  for (const std::string& name : recipe_names()) {
    for (const Length& length :
         {Length{}, Length{.epochs = 3}, Length{.epochs = 2, .accumulate = 2},
          Length{.epochs = 2, .steps_per_epoch = 7}, Length{.epochs = 3, .steps_per_epoch = 5, .accumulate = 4}}) {
      SCOPED_TRACE(name + ", " + std::to_string(length.epochs) + " epochs of " +
                   std::to_string(length.steps_per_epoch) + " steps, accumulate " +
                   std::to_string(length.accumulate));
      RecipeOptions options = options_for(name);
      options.epochs = length.epochs;
      options.steps_per_epoch = length.steps_per_epoch;
      options.accumulate = length.accumulate;
      const Recipe recipe = make_recipe(name, options);
      const std::uint64_t steps = steps_of_fit(recipe.train, recipe.fit);
      EXPECT_EQ(recipe.fit.step.accumulate, length.accumulate);
      if (length.epochs > 0) {
        EXPECT_EQ(recipe.fit.epochs, length.epochs);
      }
      if (length.steps_per_epoch > 0) {
        EXPECT_EQ(steps, length.steps_per_epoch * static_cast<std::uint64_t>(length.epochs));
      }
      if (name == "mnist-mlp") {
        EXPECT_EQ(recipe.optimizer.learning_rate.zero_from(), std::nullopt) << "constant";
        continue;
      }
      EXPECT_EQ(recipe.optimizer.learning_rate.zero_from(), steps);
      if (recipe.optimizer.groups.empty()) continue;
      EXPECT_EQ(recipe.optimizer.groups.back().learning_rate.zero_from(), steps) << "the head's";
    }
  }
}

// The bias of the whitening is trained in so many passes over the data, and a pass has fewer steps where batches
// are summed.
TEST_F(Recipes, TheWhiteningsRateEndsAfterItsPasses) {
  RecipeOptions options = options_for("cifar10-fast");  // 50 images, 6 whole batches
  const auto end = [&] {
    return make_recipe("cifar10-fast", options).optimizer.groups.front().learning_rate.zero_from();
  };
  EXPECT_EQ(end(), 18U);
  options.accumulate = 3;
  EXPECT_EQ(end(), 6U);
  options.accumulate = 4;
  EXPECT_EQ(end(), 6U) << "4 batches, then 2";
  options.accumulate = 1000;
  EXPECT_EQ(end(), 3U);
}

TEST_F(Recipes, WeightDecayIsThatOfTheExamplesInAStep) {
  RecipeOptions options = options_for("cifar10-fast");
  const auto decay = [&] {
    return std::get<SgdOptions>(make_recipe("cifar10-fast", options).optimizer.groups.back().rule).weight_decay;
  };
  const float one = decay();
  options.accumulate = 3;
  EXPECT_FLOAT_EQ(decay(), 3 * one);
  options.accumulate = 1000;
  EXPECT_FLOAT_EQ(decay(), 6 * one) << "a step ends with the pass";
}

TEST_F(Recipes, TheLoadersOptionsReachTheFit) {
  for (const std::string& name : recipe_names()) {
    RecipeOptions options = options_for(name);
    options.input = {.seed = 5, .reader_threads = 3, .memory_budget_bytes = 1 << 20, .cpu_budget = 2};
    const Recipe recipe = make_recipe(name, options);
    EXPECT_EQ(recipe.fit.input.seed, 5U);
    EXPECT_EQ(recipe.fit.input.reader_threads, 3);
    EXPECT_EQ(recipe.fit.input.memory_budget_bytes, 1U << 20);
    EXPECT_EQ(recipe.fit.input.cpu_budget, 2);
  }
}

TEST_F(Recipes, SamplesAreKeptWhereTheUserSays) {
  for (const std::string& name : recipe_names()) {
    RecipeOptions options = options_for(name);
    EXPECT_THAT(make_recipe(name, options).train.explain(), Not(HasSubstr("cache("))) << "nothing is decoded";
    int opened = 0;
    options.open_cache = [&] {
      ++opened;
      return memory();
    };
    const Recipe recipe = make_recipe(name, options);
    EXPECT_EQ(opened, 2) << name << ": for train and test";
    EXPECT_THAT(recipe.train.explain(), HasSubstr("cache(memory)")) << name;
    EXPECT_THAT(recipe.test.explain(), HasSubstr("cache(memory)")) << name;
  }
}

TEST_F(Recipes, TheDataChooseOne) {
  EXPECT_EQ(make_recipe(kAutoRecipe, options_for("mnist-mlp")).name, "fashion-mnist");
  EXPECT_EQ(make_recipe(kAutoRecipe, options_for("cifar10-fast")).name, "cifar10-cnn");
}

TEST_F(Recipes, AnUnknownNameListsTheRecipes) {
  try {
    make_recipe("alchemy", {});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    for (const std::string& name : recipe_names()) EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace headrace::tools
