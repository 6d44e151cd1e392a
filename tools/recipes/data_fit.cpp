#include "headrace/tools/recipes/data_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/tools/recipes/recipes.h"

namespace headrace::tools {
namespace {

constexpr std::uint64_t kExamined = 16;

struct FoundImages {
  Inspection::Range height = {}, width = {};  // 0 where none could be looked at
  std::int64_t channels = 0;
  bool encoded = false;
  std::uint64_t classes = 0;  // 0: their number is not known
};

FoundImages look_at(const SourcePtr& source) {
  const SourceInfo& info = source->info();
  const Field& field = info.fields.at(find_field(info.fields, "image"));
  FoundImages images{.encoded = field.encoding == Encoding::kImage, .classes = info.classes.size()};
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
  return images.channels == wanted.channels && covers(images.height, wanted.side) &&
         covers(images.width, wanted.side) && images.classes <= kClasses && (wanted.encoded || !images.encoded);
}

std::string text_of(const Inspection::Range& range) {
  return range.min == range.max ? fmt::format("{}", range.min) : fmt::format("{} to {}", range.min, range.max);
}

std::string text_of(const WantedImages& wanted) {
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
  for (const NamedRecipe& recipe : all_recipes()) {
    if (recipe.images == wanted) names.emplace_back(recipe.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// "mnist-mlp, fashion-mnist want images of 28 x 28 x 1 in 10 classes, stored as pixels; ..."
std::string wants_of_all() {
  std::vector<std::string> wants;
  const WantedImages* last = nullptr;
  for (const NamedRecipe& recipe : all_recipes()) {
    const WantedImages* wanted = recipe.images;
    if (wanted == last) continue;  // those that want the same stand together
    last = wanted;
    wants.push_back(fmt::format("{} want {}", recipes_for(wanted), text_of(*wanted)));
  }
  return fmt::format("{}", fmt::join(wants, "; "));
}

std::string what_fits(const FoundImages& images) {
  for (const NamedRecipe& recipe : all_recipes()) {
    if (fits(*recipe.images, images)) return fmt::format("{} fit this data", recipes_for(recipe.images));
  }
  return fmt::format("no recipe fits this data: {}", wants_of_all());
}

}  // namespace

const NamedRecipe& choose_recipe(const SourcePtr& source) {
  const FoundImages images = look_at(source);
  for (const NamedRecipe& recipe : all_recipes()) {
    if (recipe.automatic && fits(*recipe.images, images)) return recipe;
  }
  throw ConfigError(fmt::format("no recipe fits {}, which has {}", source->info().name, text_of(images)),
                    fmt::format("{}; for other data write a custom net in C++ or Python", wants_of_all()));
}

void require_fit(const std::string& recipe, const SourcePtr& source) {
  const auto named =
      std::ranges::find_if(all_recipes(), [&](const NamedRecipe& one) { return recipe == one.name; });
  const FoundImages images = look_at(source);
  if (fits(*named->images, images)) return;
  throw ConfigError(fmt::format("recipe {} wants {}; {} has {}", recipe, text_of(*named->images),
                                source->info().name, text_of(images)),
                    what_fits(images));
}

}  // namespace headrace::tools
