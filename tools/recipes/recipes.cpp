#include "headrace/tools/recipes/recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/inspect.h"
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

constexpr std::uint64_t kExamined = 16;

struct FoundImages {
  DType dtype = DType::kU8;
  Inspection::Range height = {}, width = {};  // 0 where none could be looked at
  std::int64_t channels = 0;
  bool encoded = false;
  std::uint64_t classes = 0;  // 0: their number is not known
};

FoundImages look_at(const SourcePtr& source) {
  const SourceInfo& info = source->info();
  const Field& field = info.fields.at(find_field(info.fields, "image"));
  FoundImages images{.dtype = field.dtype,
                     .encoded = field.encoding == Encoding::kImage,
                     .classes = std::max<std::uint64_t>(info.classes.size(), info.label_count)};
  if (field.shape.rank() != 3) return images;
  images.channels = field.shape.back();
  if (images.encoded) {
    const Inspection found = inspect_source(source, {.max_examined = kExamined});
    images.height = found.height;
    images.width = found.width;
  } else {
    images.height = {.min = field.shape[0], .max = field.shape[0]};
    images.width = {.min = field.shape[1], .max = field.shape[1]};
  }
  return images;
}

bool covers(const Inspection::Range& range, std::int64_t side) {
  return range.max == 0 || (range.min <= side && side <= range.max);
}

bool fits(const WantedImages& wanted, const FoundImages& images) {
  if (wanted.side == 0) return images.dtype == DType::kU8 && (images.channels == 1 || images.channels == 3);
  return images.channels == wanted.channels && covers(images.height, wanted.side) &&
         covers(images.width, wanted.side) && images.classes <= kClasses && (wanted.encoded || !images.encoded);
}

std::string text_of(const Inspection::Range& range) {
  return range.min == range.max ? fmt::format("{}", range.min) : fmt::format("{} to {}", range.min, range.max);
}

bool are_all_of(const FoundImages& images, std::int64_t side) {
  const auto all = [side](const Inspection::Range& range) { return range.min == side && range.max == side; };
  return all(images.height) && all(images.width);
}

std::string text_of(const WantedImages& wanted) {
  if (wanted.side == 0) return "images of any size in any number of classes";
  return fmt::format("images of {0} x {0} x {1} in {2} classes{3}", wanted.side, wanted.channels, kClasses,
                     wanted.encoded ? "" : ", stored as pixels");
}

std::string text_of(const FoundImages& images) {
  const std::string classes = images.classes == 0 ? "" : fmt::format(" in {} classes", images.classes);
  const std::string size = images.height.max == 0 ? fmt::format("{} channels", images.channels)
                                                  : fmt::format("{} x {} x {}", text_of(images.height),
                                                                text_of(images.width), images.channels);
  return fmt::format("{}{}{}", size, classes, images.encoded ? ", JPEG or PNG" : "");
}

// The recipes that want these images, "mnist-mlp, fashion-mnist".
std::string recipes_for(const WantedImages* wanted) {
  std::vector<std::string> names;
  for (const NamedRecipe& recipe : kRecipes) {
    if (recipe.images == wanted) names.emplace_back(recipe.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// "mnist-mlp, fashion-mnist want images of 28 x 28 x 1 in 10 classes, stored as pixels; ..."
std::string wants_of_all() {
  std::vector<std::string> wants;
  const WantedImages* last = nullptr;
  for (const NamedRecipe& recipe : kRecipes) {
    const WantedImages* wanted = recipe.images;
    if (wanted == last) continue;  // those that want the same stand together
    last = wanted;
    wants.push_back(fmt::format("{} want {}", recipes_for(wanted), text_of(*wanted)));
  }
  return fmt::format("{}", fmt::join(wants, "; "));
}

std::string what_fits(const FoundImages& images) {
  std::vector<std::string> names;
  for (const NamedRecipe& recipe : kRecipes) {
    if (fits(*recipe.images, images)) names.emplace_back(recipe.name);
  }
  if (!names.empty()) return fmt::format("{} fit this data", fmt::join(names, ", "));
  return fmt::format("no recipe fits this data: {}", wants_of_all());
}

const NamedRecipe& recipe_named(const std::string& name) {
  return *std::ranges::find_if(kRecipes, [&](const NamedRecipe& one) { return name == one.name; });
}

// Returns `small`, or the recipe that needs many images, or weights to begin with, and a GPU's time.
const NamedRecipe& recipe_for_any(const RecipeOptions& options, const NamedRecipe& small) {
  const bool large = options.gpu && options.train->info().records >= kManyImages;
  return large || !options.pretrained.empty() ? recipe_named("images-resnet18") : small;
}

bool has_image_options(const RecipeOptions& options) {
  return options.image_size != 0 || options.validation_split != 0 || !options.pretrained.empty();
}

// Throws ConfigError, naming the recipes that fit, if the recipe's net does not take the train split's images, or
// they have too many classes. Checks only a few encoded images; the run finds one of another size than the rest.
void require_fit(const NamedRecipe& recipe, const SourcePtr& source) {
  const WantedImages& wanted = *recipe.images;
  const FoundImages images = look_at(source);
  if (fits(wanted, images)) return;
  throw ConfigError(fmt::format("recipe {} wants {}; {} has {}", recipe.name, text_of(wanted), source->info().name,
                                text_of(images)),
                    what_fits(images));
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const NamedRecipe& recipe : kRecipes) names.emplace_back(recipe.name);
  return names;
}

const NamedRecipe& choose_recipe(const RecipeOptions& options) {
  const SourcePtr& source = options.train;
  FoundImages images = look_at(source);
  if (images.classes == 0) images.classes = class_count(*source);
  for (const NamedRecipe& recipe : kRecipes) {
    if (!recipe.automatic || !fits(*recipe.images, images)) continue;
    if (recipe.images->side == 0) return recipe_for_any(options, recipe);
    if (!has_image_options(options) && are_all_of(images, recipe.images->side) && has_test_split(options)) {
      return recipe;
    }
  }
  throw ConfigError(fmt::format("no recipe fits {}, which has {}", source->info().name, text_of(images)),
                    fmt::format("{}; for other data write a custom net in C++ or Python", wants_of_all()));
}

Recipe make_recipe(const std::string& name, const RecipeOptions& options) {
  RecipeOptions opened = options;
  if (name == kAutoRecipe) {
    opened.train = open_split(options, Split::kTrain, 0);
    const NamedRecipe& chosen = choose_recipe(opened);
    // Where the data do not say how many classes there are, a recipe does.
    if (opened.train->info().classes.empty() && chosen.images->side > 0) opened.train = nullptr;
    return chosen.make(opened);
  }
  const auto found = std::ranges::find_if(kRecipes, [&](const NamedRecipe& one) { return name == one.name; });
  if (found == kRecipes.end()) {
    throw ConfigError("unknown recipe '" + name + "'",
                      fmt::format("there are: {}", fmt::join(recipe_names(), ", ")));
  }
  if (!opened.train) opened.train = open_split(options, Split::kTrain, found->images->side > 0 ? kClasses : 0);
  require_fit(*found, opened.train);
  return found->make(opened);
}

}  // namespace headrace::tools
