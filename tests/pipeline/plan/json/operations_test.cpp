// Every operation goes through JSON with each of its options, to the last bit.
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/pipeline/plan/json/option_reader.h"
#include "headrace/pipeline/plan/json/option_writer.h"
#include "headrace/pipeline/plan/json/parse.h"
#include "headrace/tests/pipeline/plan/json/change_options.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/support/data.h"

namespace headrace::test {
namespace {

template <typename Options>
void expect_all_shown() {
  ChangeAll all(0);
  const OperationPtr usual = define(Options{});
  usual->visit_options(all);
  int members = count_members<Options>();
  if constexpr (requires(Options options) { options.along; }) members += count_members<Along>() - 1;
  EXPECT_EQ(all.count(), members) << usual->name() << ": each_field() leaves a member out";
}

template <typename... Options>
void expect_each_shown(OperationList<Options...> /*list*/) {
  (expect_all_shown<Options>(), ...);
}

TEST(PlanJsonOperations, ShowEveryMember) { expect_each_shown(DataOperations()); }

// Whoever declares an operation and forgets the table is told here.
TEST(PlanJsonOperations, AreAllInTheTable) {
  const std::vector<std::byte> bytes = read_whole_file(source_file("pipeline/operations.h"));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  static constexpr std::string_view kDeclared = "\nOperationPtr define(";
  std::size_t declared = 0;
  for (std::size_t at = 0; (at = text.find(kDeclared, at)) != std::string_view::npos; ++at) ++declared;
  EXPECT_EQ(data_operations().size(), declared);
}

TEST(PlanJsonOperations, KeepEveryOptionToTheBit) {
  const PlanOptions plan;
  for (const OperationPtr& usual : data_operations()) {
    EXPECT_EQ(find_operation(usual->name()), usual);
    for (std::uint32_t round = 0; round < 300; ++round) {
      ChangeAll change(round);
      const OperationPtr changed = usual->visit_options(change);
      const auto json =
          plan_json::write_options(usual->name(), [&](auto& visit) { changed->visit_options(visit); });
      const nlohmann::json parsed = plan_json::parse(plan_json::print(json));
      plan_json::OptionReader reader(plan_json::JsonPlace(parsed), plan);
      ASSERT_EQ(usual->visit_options(reader)->describe(), changed->describe()) << json;
    }
  }
}

// Such a stream with each; another operation needs another line.
TEST(PlanJsonOperations, GiveTheSameStream) {
  const Operations floats = normalize({0.1F, 0.2F, 1.0F / 3}, {0.3F, 0.7F, 0.1F});
  const Operations soft = one_hot(10, 0.1F);
  const std::map<std::string, Operations> chains{
      {"adjust_sharpness", adjust_sharpness(1.7F)},
      {"autocontrast", autocontrast(0.3F)},
      {"brightness_contrast", floats | brightness_contrast({.brightness = 0.3F, .contrast = 0.1F})},
      {"cast", cast(DType::kF32)},
      {"center_crop", center_crop(7)},
      {"color_jitter", color_jitter({.brightness = 0.1F, .contrast = 0.7F, .saturation = 0.3F, .hue = 0.01F})},
      {"cutmix", cutmix({.alpha = 0.9F, .probability = 0.7F})},
      {"cutout", cutout(4, {1.0F, 7.0F, 250.0F})},
      {"equalize", equalize(0.4F)},
      {"flatten", flatten()},
      {"flip", alternating_flip()},
      {"gaussian_blur", gaussian_blur({.kernel_size = 5, .min_sigma = 0.3F, .probability = 0.9F})},
      {"grayscale", grayscale({.probability = 0.4F})},
      {"invert", invert(0.2F)},
      {"mixup", mixup({.alpha = 0.1F, .probability = 0.9F})},
      {"normalize", floats},
      {"one_hot", soft},
      {"pad_crop", pad_crop(11, 3, Padding::kReflect)},
      {"per_image_standardization", per_image_standardization()},
      {"posterize", posterize(3, 0.7F)},
      {"rand_augment", rand_augment({.operations = 3, .magnitude = 20, .fill = {1, 2, 3}})},
      {"random_affine",
       random_affine({.min_degrees = -20, .max_degrees = 40, .min_scale = 0.7F, .max_shear_x = 9})},
      {"random_erasing", random_erasing({.max_area = 0.5F, .fill = {9}})},
      {"random_resized_crop", random_resized_crop({.size = 6, .min_area = 0.3F, .max_ratio = 1.7F})},
      {"random_rotation", random_rotation({.max_degrees = 90, .interpolation = Interpolation::kBilinear})},
      {"resize", resize(9)},
      {"resize_to", resize(9, 14)},
      {"solarize", solarize(99, 0.8F)},
      {"to_layout", floats | to_layout(ImageLayout::kChannelsFirst)},
      {"layout_is", floats | layout_is(ImageLayout::kChannelsLast) | flip()},
      {"trivial_augment_wide", trivial_augment_wide({.bins = 11})},
      {"vertical_flip", vertical_flip(0.4F)},
  };
  const SourcePtr source = noise_images(29, 12, 10);
  const PlanParts parts{.sources = {{"noise", source}}};
  for (const OperationPtr& operation : data_operations()) {
    const auto chain = chains.find(operation->name());
    ASSERT_NE(chain, chains.end()) << "no stream here has " << operation->name();
    const Dataset images = Dataset::from(source).shuffle({.seed = 1});
    const bool mixes = operation->is_batch_level();
    const Dataset batches = images.map(mixes ? floats | soft : chain->second).batch({.global_batch = 8});
    expect_same_stream(mixes ? batches.map(chain->second) : batches, parts);
  }
}

}  // namespace
}  // namespace headrace::test
