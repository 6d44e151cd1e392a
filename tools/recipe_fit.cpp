#include "headrace/tools/recipe_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/inspect.h"

namespace headrace::tools {
namespace {

constexpr std::uint64_t kExamined = 16;

struct Wanted {
  std::int64_t side = 0, channels = 0;
  bool decodes = false;  // or else the images have to be stored as pixels
  std::vector<std::string> recipes = {};
};

const std::array<Wanted, 2>& all_wanted() {
  static const std::array<Wanted, 2> table{
      Wanted{.side = 28, .channels = 1, .decodes = false, .recipes = {"mnist-mlp", "fashion-mnist"}},
      Wanted{.side = 32,
             .channels = 3,
             .decodes = true,
             .recipes = {"cifar10-cnn", "cifar10-fast", "cifar10-fast-b", "cifar10-resnet18"}}};
  return table;
}

struct Images {
  Inspection::Range height = {}, width = {};  // 0 where none could be looked at
  std::int64_t channels = 0;
  bool encoded = false;
  std::uint64_t classes = 0;  // 0: their number is not known
};

Images images_of(const SourcePtr& source) {
  const SourceInfo& info = source->info();
  const Field& field = info.fields.at(find_field(info.fields, "image"));
  Images images{.encoded = field.encoding == Encoding::kImage, .classes = info.classes.size()};
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

bool fits(const Wanted& wanted, const Images& images) {
  return images.channels == wanted.channels && covers(images.height, wanted.side) &&
         covers(images.width, wanted.side) && images.classes <= kClasses && (wanted.decodes || !images.encoded);
}

std::string text_of(const Inspection::Range& range) {
  return range.min == range.max ? fmt::format("{}", range.min) : fmt::format("{} to {}", range.min, range.max);
}

std::string text_of(const Wanted& wanted) {
  return fmt::format("images of {0} x {0} x {1} in {2} classes{3}", wanted.side, wanted.channels, kClasses,
                     wanted.decodes ? "" : ", stored as pixels");
}

std::string text_of(const Images& images) {
  const std::string classes = images.classes == 0 ? "" : fmt::format(" in {} classes", images.classes);
  const std::string size = images.height.max == 0 ? fmt::format("{} channels", images.channels)
                                                  : fmt::format("{} x {} x {}", text_of(images.height),
                                                                text_of(images.width), images.channels);
  return fmt::format("{}{}{}", size, classes, images.encoded ? ", JPEG or PNG" : "");
}

std::string advice(const Images& images) {
  std::vector<std::string> others;
  for (const Wanted& wanted : all_wanted()) {
    if (fits(wanted, images)) return fmt::format("{} fit this data", fmt::join(wanted.recipes, ", "));
    others.push_back(fmt::format("{} want {}", fmt::join(wanted.recipes, ", "), text_of(wanted)));
  }
  return fmt::format("no recipe fits this data: {}", fmt::join(others, "; "));
}

}  // namespace

void require_fit(const std::string& recipe, const SourcePtr& source) {
  const auto wanted = std::ranges::find_if(all_wanted(), [&](const Wanted& one) {
    return std::ranges::find(one.recipes, recipe) != one.recipes.end();
  });
  const Images images = images_of(source);
  if (fits(*wanted, images)) return;
  throw ConfigError(
      fmt::format("recipe {} wants {}; {} has {}", recipe, text_of(*wanted), source->info().name, text_of(images)),
      advice(images));
}

}  // namespace headrace::tools
