#include "headrace/tools/recipes/recipes.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/train/graph.h"

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
  RecipeOptions options = options_for("cifar10-fast");
  options.image_size = 32;
  EXPECT_EQ(make_recipe(kAutoRecipe, options).name, "images-small") << "only that one can honour it";
}

// Test data of the recipes for any images, without files of pixels.
RecipeOptions photographs(std::int64_t classes, std::uint64_t images) {
  RecipeOptions options;
  options.data = "a folder without a test split";
  options.train = generator({.name = "photographs",
                             .fields = {{.name = "image", .dtype = DType::kU8, .shape = {40, 30, 3}},
                                        {.name = "label", .dtype = DType::kI64, .shape = {}}},
                             .records = images,
                             .classes = std::vector<std::string>(static_cast<std::size_t>(classes), "a class"),
                             .function = [=](std::uint64_t index, RecordWriter& record) {
                               const std::vector<std::byte> pixels(40 * 30 * 3);
                               record.put(0, pixels);
                               record.put(1, static_cast<std::int64_t>(index) % classes);
                             }});
  return options;
}

TEST(ImageRecipes, TheDataSayHowManyClassesThereAre) {
  for (const std::int64_t classes : {2, 1000, 5000}) {
    const Recipe recipe = make_recipe("images-small", photographs(classes, 50));
    Graph graph(recipe.train.fields());
    graph.finish(recipe.net(graph));
    EXPECT_EQ(graph.layer(graph.output()).shape(), (Shape{classes}));
  }
}

TEST(ImageRecipes, WithoutATestSplitAPartOfTheTrainSplitIsHeldOut) {
  RecipeOptions options = photographs(3, 50);
  const Recipe tenth = make_recipe("images-small", options);
  EXPECT_EQ(tenth.test.size(), 5U);
  EXPECT_EQ(tenth.train.size(), 45U);
  EXPECT_EQ(tenth.fit.validation->size(), 5U);
  EXPECT_THAT(tenth.notes, testing::Contains(HasSubstr("Validation: 1 image in 10 of the train split, 5 images")));
  EXPECT_THAT(tenth.notes, testing::Contains(HasSubstr("Test: the validation images, too; ")));
  options.validation_split = 0.5;
  EXPECT_EQ(make_recipe("images-small", options).test.size(), 25U);
  EXPECT_THROW(make_recipe("images-small", photographs(1, 1)), ConfigError);
  EXPECT_EQ(make_recipe("images-small", photographs(2, 2)).train.size(), 1U);
}

TEST(ImageRecipes, ManyImagesOnAGpuAreForTheLargeNet) {
  const auto chosen = [](std::uint64_t images, bool gpu, const char* pretrained = "") {
    RecipeOptions options = photographs(3, images);
    options.gpu = gpu;
    options.pretrained = pretrained;
    return choose_recipe(options).name;
  };
  EXPECT_STREQ(chosen(kManyImages, true), "images-resnet18");
  EXPECT_STREQ(chosen(kManyImages - 1, true), "images-small");
  EXPECT_STREQ(chosen(kManyImages, false), "images-small");
  EXPECT_STREQ(chosen(100, false, "weights.safetensors"), "images-resnet18");
}

TEST(ImageRecipes, WhatTheyCannotHonourIsRefused) {
  RecipeOptions options = photographs(3, 50);
  options.pretrained = "weights.safetensors";
  EXPECT_THROW(make_recipe("images-small", options), ConfigError);
  for (const int size : {-1, 8, 2000}) {
    RecipeOptions sized = photographs(3, 50);
    sized.image_size = size;
    if (size > 0) {
      EXPECT_THROW(make_recipe("images-small", sized), ConfigError);
    }
  }
  test::TempFolder folder;
  test::write_cifar(folder);
  for (const auto& set :
       {+[](RecipeOptions& one) { one.image_size = 64; }, +[](RecipeOptions& one) { one.validation_split = 0.1; },
        +[](RecipeOptions& one) { one.pretrained = "weights.safetensors"; }}) {
    RecipeOptions other{.data = folder.path()};
    set(other);
    EXPECT_THROW(make_recipe("cifar10-cnn", other), ConfigError);
  }
}

TEST_F(Recipes, AnUnknownNameListsTheRecipes) {
  const ConfigError error = test::error_of<ConfigError>([&] { make_recipe("alchemy", {}); });
  for (const std::string& name : recipe_names()) EXPECT_THAT(error.what(), HasSubstr(name));
}

}  // namespace
}  // namespace headrace::tools
