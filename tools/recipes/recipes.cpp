#include "headrace/tools/recipes/recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"
#include "headrace/tools/recipes/data_fit.h"
#include "headrace/tools/recipes/recipe_data.h"

namespace headrace::tools {
namespace {

constexpr WantedImages kDigits{.side = 28, .channels = 1};
constexpr WantedImages kCifar{.side = 32, .channels = 3, .encoded = true};

constexpr WantedImages kAnyImages{.encoded = true};

constexpr std::array kRecipes = {
    NamedRecipe{.name = "mnist-mlp", .make = mnist_mlp_recipe, .images = &kDigits},
    NamedRecipe{.name = "fashion-mnist", .make = fashion_mnist_recipe, .images = &kDigits, .automatic = true},
    NamedRecipe{.name = "cifar10-cnn", .make = cifar10_cnn_recipe, .images = &kCifar, .automatic = true},
    NamedRecipe{.name = "cifar10-fast", .make = cifar10_fast_recipe, .images = &kCifar},
    NamedRecipe{.name = "cifar10-fast-b", .make = cifar10_fast_b_recipe, .images = &kCifar},
    NamedRecipe{.name = "cifar10-resnet18", .make = cifar10_resnet18_recipe, .images = &kCifar},
    NamedRecipe{.name = "images-small", .make = images_small_recipe, .images = &kAnyImages, .automatic = true},
    NamedRecipe{.name = "images-resnet18", .make = images_resnet18_recipe, .images = &kAnyImages},
};

}  // namespace

std::span<const NamedRecipe> all_recipes() { return kRecipes; }

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const NamedRecipe& recipe : kRecipes) names.emplace_back(recipe.name);
  return names;
}

Recipe make_recipe(const std::string& name, const RecipeOptions& options) {
  if (name == kAutoRecipe) {
    RecipeOptions opened = options;
    opened.train = open_split(options, Split::kTrain, 0);
    const NamedRecipe& chosen = choose_recipe(opened);
    // Where the data do not say how many classes there are, a recipe does.
    if (opened.train->info().classes.empty() && chosen.images->side > 0) opened.train = nullptr;
    return chosen.make(opened);
  }
  const auto found = std::ranges::find_if(kRecipes, [&](const NamedRecipe& one) { return name == one.name; });
  if (found != kRecipes.end()) return found->make(options);
  throw ConfigError("unknown recipe '" + name + "'",
                    fmt::format("there are: {}", fmt::join(recipe_names(), ", ")));
}

}  // namespace headrace::tools
