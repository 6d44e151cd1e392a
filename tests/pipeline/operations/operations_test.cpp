// What every operation promises, a row each: one stream however it is run, the field after it, what it refuses,
// whether it draws. What an operation does to pixels is in a file of its own.
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

struct FieldAfter {
  Operations chain;
  Field after;
  Field before = rgb_field();
};

struct OperationRefusal {
  Operations chain;
  std::string words;  // that the message has; "": the field is taken
  Field field = rgb_field();
};

struct OperationRow {
  std::string name;
  std::vector<Dataset> streams = {};
  std::vector<FieldAfter> fields = {};
  std::vector<OperationRefusal> refusals = {};
  std::vector<Operations> random = {}, fixed = {};
  std::vector<std::pair<Operations, std::string>> described = {};
  std::string field = "image";
  bool on_batches = false;

  friend void PrintTo(const OperationRow& row, std::ostream* out) { *out << row.name; }
};

Field floats_field() { return image_field({32, 48, 3}, DType::kF32); }
Field grey_field() { return image_field({8, 8, 1}); }

std::vector<OperationRow> movements() {
  const Operations first = to_layout(ImageLayout::kChannelsFirst), last = to_layout(ImageLayout::kChannelsLast);
  Field planes = image_field({3, 32, 48});
  planes.layout = ImageLayout::kChannelsFirst;
  return {
      {.name = "flip",
       .refusals = {{flip(kNan), "probability"},
                    {flip(1.5F), "probability"},
                    {first | flip(), "channels come first"},
                    {flatten() | flip(), "(H, W, C)"}},
       .random = {flip(), alternating_flip()},
       .described = {{flip(), "flip(probability=0.5, alternating=false)"},
                     {alternating_flip(), "flip(probability=0.5, alternating=true)"}}},
      {.name = "vertical_flip",
       .streams = {augmented_by(flip() | vertical_flip() | to_planes())},
       .refusals = {{vertical_flip(kNan), "probability"}, {flatten() | vertical_flip(), "(H, W, C)"}}},
      {.name = "pad_crop",
       .streams = {augmented_by(pad_crop(10, 3, Padding::kReflect) | flip() | to_planes())},
       .fields = {{pad_crop(32, 4), image_field({32, 32, 3})}},
       .refusals = {{pad_crop(32, 2'000'000'000), "padding is above"},
                    {pad_crop(64, 4), "smaller than the crop"},
                    {pad_crop(8, 32, Padding::kReflect), "reflection"},
                    {pad_crop(0, 4), "not positive"},
                    {pad_crop(8, -1), "negative"}},
       .random = {pad_crop(32, 4, Padding::kReflect)},
       .described = {{pad_crop(32, 4, Padding::kReflect), "pad_crop(size=32, pad=4, padding=reflect)"}}},
      {.name = "center_crop",
       .streams = {augmented_by(resize(11) | center_crop(8))},
       .fields = {{resize(256) | center_crop(224), image_field({224, 224, 3}),
                   image_field({Shape::kDynamic, Shape::kDynamic, 3})}},
       .refusals = {{center_crop(-3), "not positive"}, {center_crop(33), "smaller than the crop"}},
       .fixed = {center_crop(8)}},
      {.name = "random_resized_crop",
       .streams = {augmented_by(random_resized_crop({.size = 7}) | flip())},
       .fields = {{random_resized_crop(), image_field({224, 224, 3})}},
       .refusals = {{random_resized_crop({.ratio = {0.75F, kInfinity}}), "ratio must"},
                    {random_resized_crop({.ratio = {kNan, 1}}), "ratio must"},
                    {random_resized_crop({.area = {kNan, 1}}), "area must"},
                    {random_resized_crop({.size = 1 << 15}), "above 16384"},
                    {random_resized_crop({.area = {0.5F, 0.1F}}), "area must"},
                    {random_resized_crop({.ratio = {0, 1}}), "ratio must"}},
       .random = {random_resized_crop()}},
      {.name = "resize",
       .fields = {{resize(16), image_field({16, 24, 3})}},
       .refusals = {{resize(1 << 30), "above 16384"},
                    {resize(0), "not positive"},
                    {normalize({0}, {1}) | resize(8), "uint8 is needed"}},
       .fixed = {resize(8)}},
      {.name = "resize_to",
       .fields = {{resize(16, 9), image_field({16, 9, 3})}},
       .refusals = {{resize(8, 0), "not positive"}, {resize(1 << 30, 8), "above 16384"}}},
      {.name = "random_rotation",
       .streams = {augmented_by(
           random_rotation({.degrees = {-90, 90}, .interpolation = Interpolation::kBilinear}) | flip() |
           to_planes())},
       .refusals = {{random_rotation({.degrees = {11, 10}}), "ends before it begins"},
                    {random_rotation({.degrees = {-10, kInfinity}}), "finite"},
                    {random_rotation({.degrees = {-10, 2e6F}}), "not within"},
                    {random_rotation({.fill = {1, 2}}), "2 values for 3 channels"},
                    {random_rotation({.fill = {-1}}), "0 and 255"},
                    {random_rotation({.probability = 1.5F}), "probability"},
                    {random_rotation({}), "more than 4 channels", image_field({8, 8, 5})},
                    {random_rotation({}), "uint8", floats_field()},
                    {random_rotation({}), "", image_field({28, 28, 1})}}},
      {.name = "random_affine",
       .streams = {augmented_by(random_affine({.degrees = {-9, 9}, .translate = {0.2F, 0}, .scale = {0.8F, 1}}) |
                                flip())},
       .refusals = {{random_affine({.degrees = {1, 0}}), "ends before it begins"},
                    {random_affine({.translate = {1.5F, 0}}), "to translate by is not within 0 and 1"},
                    {random_affine({.translate = {0, kNan}}), "to translate by"},
                    {random_affine({.scale = {0, 1}}), "0 < minimum"},
                    {random_affine({.scale = {1, 0.5F}}), "minimum <= maximum"},
                    {random_affine({.shear = {0, 90}}), "shear are not within -89 and 89"},
                    {random_affine({.fill = {300}}), "0 and 255"}}},
      {.name = "to_layout", .fields = {{first, planes}, {first | last, rgb_field()}, {last, rgb_field()}}},
      {.name = "layout_is"},
      {.name = "flatten",
       .fields = {{flatten(), image_field({32 * 48 * 3})}},
       .refusals = {{flatten(), "differs from record", image_field({Shape::kDynamic, 4, 3})}}},
  };
}

std::vector<OperationRow> values() {
  return {
      {.name = "cast", .refusals = {{cast(DType::kF16), "float16"}}},
      {.name = "normalize",
       .fields = {{normalize({0}, {1}), floats_field()},
                  {cast(DType::kF32) | normalize({125.3F}, {63}), floats_field()}},
       .refusals = {{normalize({kNan}, {1}), "finite"},
                    {normalize({0}, {kInfinity}), "finite"},
                    {normalize({0, 0}, {1, 1}), "2 means for 3 channels"},
                    {normalize({0}, {0}), "deviation is 0"},
                    {normalize({0}, {-1}), "deviation is -1"},
                    {normalize({0}, {kNan}), "finite"},
                    {normalize({125.3F}, {63}), "above 1"},
                    {normalize({0}, {255}), "divide both by 255"},
                    {normalize({}, {}), "0 means"}},
       .described = {{normalize({0.5F, 1}, {2, 3}), "normalize(mean=[0.5, 1], std=[2, 3])"}}},
      {.name = "per_image_standardization",
       .streams = {augmented_by(flip() | per_image_standardization() | to_layout(ImageLayout::kChannelsFirst))},
       .fields = {{per_image_standardization(), floats_field()}},
       .fixed = {per_image_standardization()}},
      {.name = "brightness_contrast",
       .streams = {augmented_by(flip() | to_planes() |
                                brightness_contrast({.brightness = 0.3F, .contrast = 0.4F}) | cutout(3))},
       .refusals = {{brightness_contrast({}), "normalize() or cast() it first"},
                    {brightness_contrast({.brightness = 3, .contrast = 2}), "", floats_field()},
                    {brightness_contrast({.brightness = -1}), "negative", floats_field()},
                    {brightness_contrast({.contrast = kNan}), "finite", floats_field()},
                    {brightness_contrast({.contrast = kInfinity}), "finite", floats_field()}}},
      {.name = "color_jitter",
       .streams = {augmented_by(
                       color_jitter({.brightness = 0.4F, .contrast = 0.4F, .saturation = 0.4F, .hue = 0.1F})),
                   augmented_by(pad_crop(9, 2) | color_jitter({.contrast = 0.5F}) | flip() | to_planes())},
       .fields = {{color_jitter({.hue = 0.5F}), rgb_field()}},
       .refusals = {{color_jitter({.brightness = -0.1F}), "negative"},
                    {color_jitter({.saturation = kNan}), "finite"},
                    {color_jitter({.hue = 0.6F}), "0 and 0.5"},
                    {color_jitter({.hue = kNan}), "0 and 0.5"},
                    {color_jitter({.probability = -1}), "probability"},
                    {color_jitter({}), "three channels", grey_field()},
                    {color_jitter({}), "uint8 is needed", floats_field()}},
       .random = {color_jitter({})}},
      {.name = "grayscale",
       .streams = {augmented_by(grayscale({.probability = 0.5F}) | flip() | to_planes())},
       .refusals = {{grayscale({.channels = 2}), "neither 1 nor 3"},
                    {grayscale({.channels = 1, .probability = 0.5F}), "ask for three channels"},
                    {grayscale({.probability = kNan}), "probability"},
                    {grayscale(), "three channels", grey_field()},
                    {grayscale(), "uint8", floats_field()}},
       .random = {grayscale({.probability = 0.1F})},
       .fixed = {grayscale()}},
      {.name = "gaussian_blur",
       .streams = {augmented_by(pad_crop(9, 2) | gaussian_blur({.kernel_size = 5, .probability = 0.7F}) | flip() |
                                to_planes())},
       .refusals = {{gaussian_blur({.kernel_size = 4}), "odd number"},
                    {gaussian_blur({.kernel_size = 129}), "odd number"},
                    {gaussian_blur({.kernel_size = 3, .sigma = {0, 2}}), "0 < minimum"},
                    {gaussian_blur({.kernel_size = 3, .sigma = {3, 2}}), "minimum <= maximum"},
                    {gaussian_blur({.kernel_size = 3, .sigma = {0.1F, kInfinity}}), "finite"},
                    {gaussian_blur({.probability = 2}), "probability"},
                    {gaussian_blur({.kernel_size = 17}), "half of the kernel", image_field({8, 32, 3})},
                    {gaussian_blur(), "uint8", floats_field()}},
       .random = {gaussian_blur(), gaussian_blur({.sigma = {1, 1}, .probability = 0.5F})},
       .fixed = {gaussian_blur({.sigma = {1, 1}})}},
      {.name = "invert"},
      {.name = "posterize", .refusals = {{posterize(9), "0 and 8"}, {posterize(-1), "0 and 8"}}},
      {.name = "solarize", .refusals = {{solarize(kNan), "0 and 256"}, {solarize(257), "0 and 256"}}},
      {.name = "adjust_sharpness",
       .refusals = {{adjust_sharpness(-1), "negative"}, {adjust_sharpness(kInfinity), "finite"}}},
      {.name = "autocontrast"},
      {.name = "equalize"},
      {.name = "rand_augment",
       .streams = {augmented_by(pad_crop(12, 2) | rand_augment({.operations = 3}) | to_planes())},
       .refusals = {{rand_augment({.operations = 0}), "operations are not within"},
                    {rand_augment({.magnitude = 31}), "none of the bins"},
                    {rand_augment({.magnitude = -1}), "none of the bins"},
                    {rand_augment({.bins = 1}), "bins are not within"},
                    {rand_augment({.fill = {1, 2}}), "2 values for 3 channels"},
                    {rand_augment({}), "three channels", grey_field()}}},
      {.name = "trivial_augment_wide",
       .streams = {augmented_by(trivial_augment_wide() | flip())},
       .refusals = {{trivial_augment_wide({.bins = 0}), "bins"}}},
  };
}

std::vector<OperationRow> holes_and_mixtures() {
  return {
      {.name = "cutout",
       .streams = {augmented_by(cutout(4, {1, 2, 3})), augmented_by(to_planes() | cutout(5))},
       .fields = {{cutout(100, {1, 2, 3}), rgb_field()}},
       .refusals = {{cutout(0), "not positive"},
                    {cutout(3, {1, 2}), "2 values for 3 channels"},
                    {cutout(3, {}), "0 values"},
                    {cutout(3, {256}), "0 and 255"},
                    {cutout(3, {-256}), "", floats_field()},
                    {cutout(3, {kNan}), "finite"},
                    {flatten() | cutout(3), "three axes"}},
       .random = {cutout(1)},
       .described = {{cutout(8, {1, 2, 3}), "cutout(size=8, fill=[1, 2, 3])"}}},
      {.name = "random_erasing",
       .streams = {augmented_by(flip() | random_erasing({.fill = {1, 2, 3}})),
                   augmented_by(to_planes() | random_erasing())},
       .refusals = {{random_erasing({.probability = kNan}), "probability"},
                    {random_erasing({.area = {0, 0.33F}}), "area must satisfy 0 < minimum"},
                    {random_erasing({.area = {0.02F, 1.5F}}), "maximum <= 1"},
                    {random_erasing({.ratio = {-1, 3.3F}}), "ratio must satisfy 0 < minimum"},
                    {random_erasing({.ratio = {0.3F, kInfinity}}), "infinity"},
                    {random_erasing({.fill = {1, 2}}), "2 values for 3 channels"},
                    {random_erasing({.fill = {-1}}), "0 and 255"}}},
      {.name = "one_hot",
       .streams = {augmented_by(one_hot(10, 0.1F))},
       .fields = {{one_hot(7), {.name = "label", .dtype = DType::kF32, .shape = {7}}, label_field()}},
       .refusals = {{one_hot(0), "0 classes", label_field()},
                    {one_hot(5, -1), "smoothing", label_field()},
                    {one_hot(5), "class number"},
                    {one_hot(5) | one_hot(5), "class number", label_field()}},
       .fixed = {one_hot(2)},
       .field = "label"},
      {.name = "mixup",
       .streams = {mixed(mixup(), to_planes()), mixed(mixup({.alpha = 1, .probability = 0.7F}), flip()),
                   samples()
                       .map(one_hot(10))
                       .cache(memory())
                       .map(flip() | to_floats())
                       .batch({.global_batch = kGlobal})
                       .map(mixup())},
       .fields = {{mixup(), rgb_field()}},
       .refusals = {{mixup({.alpha = kNan}), "alpha"}, {mixup({.probability = 1.1F}), "probability"}},
       .random = {mixup()},
       .on_batches = true},
      {.name = "cutmix",
       .streams = {mixed(cutmix(), to_planes()), mixed(cutmix({.alpha = 0.3F}), flip()),
                   mixed(cutmix() | mixup(), to_floats() | cutout(3))},
       .fields = {{cutmix(), rgb_field()}},
       .refusals = {{cutmix({.alpha = 1e9F}), "alpha"}, {cutmix(), "three axes", image_field({32})}},
       .random = {cutmix()},
       .on_batches = true},
  };
}

std::vector<OperationRow> operation_rows() {
  std::vector<OperationRow> rows = movements();
  for (auto* more : {values, holes_and_mixtures}) std::ranges::move(more(), std::back_inserter(rows));
  return rows;
}

class OperationTest : public ::testing::TestWithParam<OperationRow> {};

TEST_P(OperationTest, IsOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  for (const Dataset& dataset : GetParam().streams) expect_operation_streams(dataset);
}

TEST_P(OperationTest, TellsTheFieldAfterIt) {
  for (const auto& [chain, after, before] : GetParam().fields) EXPECT_EQ(field_after(chain, before), after);
}

TEST_P(OperationTest, RefusesWhatCannotBe) {
  for (const auto& [chain, words, field] : GetParam().refusals) {
    const std::string said = refusal_of_operations(chain, field);
    EXPECT_TRUE(words.empty() ? said.empty() : said.find(words) != std::string::npos) << words << "\n" << said;
  }
}

TEST_P(OperationTest, SaysWhatItIs) {
  const OperationRow& row = GetParam();
  const OperationPtr operation = find_operation(row.name);
  ASSERT_TRUE(operation);
  EXPECT_EQ(operation->field(), row.field);
  EXPECT_EQ(operation->is_batch_level(), row.on_batches);
  for (const Operations& chain : row.random) EXPECT_TRUE(is_random(chain.list()[0])) << describe(chain.list()[0]);
  for (const Operations& chain : row.fixed) EXPECT_FALSE(is_random(chain.list()[0])) << describe(chain.list()[0]);
  for (const auto& [chain, text] : row.described) EXPECT_EQ(describe(chain.list()[0]), text);
}

INSTANTIATE_TEST_SUITE_P(Each, OperationTest, testing::ValuesIn(operation_rows()),
                         [](const auto& each) { return each.param.name; });

TEST(Operations, HaveARowEach) {
  std::set<std::string, std::less<>> names;
  for (const OperationRow& row : operation_rows()) names.insert(row.name);
  for (const OperationPtr& operation : data_operations()) {
    EXPECT_TRUE(names.contains(operation->name())) << operation->name();
  }
  EXPECT_EQ(field_of(Operation{OneHot{.field = "fine"}}), "fine");
}

}  // namespace
}  // namespace headrace::test
