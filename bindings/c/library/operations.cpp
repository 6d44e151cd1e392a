// Chains of operations.
#include "headrace/pipeline/operation.h"

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

// Runs the body of a function that appends the result of `define`.
template <typename Define>
hr_status add_operation(const char* function, hr_operations* chain, const Define& define) noexcept {
  return guarded(function, [&] {
    std::vector<Operation>& list = given(chain, "chain").list;
    list.emplace_back(define());
  });
}

std::vector<float> floats_of(const float* values, std::size_t count, const char* name) {
  require(values, name);
  return {values, values + count};
}

std::vector<float> fill_of(const float* values, std::size_t count) {
  return values == nullptr ? std::vector<float>{0} : std::vector<float>{values, values + count};
}

Interpolation interpolation_of(std::int32_t given) {
  return enum_of(given, Interpolation::kBilinear, "interpolation");
}

}  // namespace
}  // namespace headrace::c

using headrace::c::add_operation;
using headrace::c::enum_of;
using headrace::c::given;
using headrace::c::guarded;

hr_status hr_operations_create(hr_operations** chain) {
  return guarded(__func__, [&] {
    hr_operations*& result = given(chain, "chain");
    result = new hr_operations;
  });
}

void hr_operations_free(hr_operations* chain) { delete chain; }

hr_status hr_operations_append(hr_operations* chain, const hr_operations* other) {
  return guarded(__func__, [&] {
    const std::vector<headrace::Operation> added = given(other, "other").list;
    std::vector<headrace::Operation>& list = given(chain, "chain").list;
    list.insert(list.end(), added.begin(), added.end());
  });
}

hr_status hr_operations_describe(const hr_operations* chain, char** text) {
  return guarded(__func__, [&] {
    char*& result = given(text, "text");
    std::string all;
    for (const headrace::Operation& operation : given(chain, "chain").list) {
      if (!all.empty()) all += " | ";
      all += headrace::describe(operation);
    }
    result = headrace::c::owned_text(all);
  });
}

hr_status hr_pad_crop(hr_operations* chain, int32_t size, int32_t pad, int32_t padding) {
  return add_operation(__func__, chain, [&] {
    return headrace::PadCrop{
        .size = size, .pad = pad, .padding = enum_of(padding, headrace::Padding::kReflect, "padding")};
  });
}

hr_status hr_flip(hr_operations* chain, float probability, int32_t draw) {
  return add_operation(__func__, chain, [&] {
    return headrace::Flip{.probability = probability,
                          .draw = enum_of(draw, headrace::FlipDraw::kAlternating, "draw")};
  });
}

hr_status hr_normalize(hr_operations* chain, const float* mean, const float* std, size_t channels) {
  return add_operation(__func__, chain, [&] {
    return headrace::Normalize{.mean = headrace::c::floats_of(mean, channels, "mean"),
                               .std = headrace::c::floats_of(std, channels, "std")};
  });
}

hr_status hr_cast(hr_operations* chain, int32_t dtype) {
  return add_operation(__func__, chain,
                       [&] { return headrace::Cast{.to = enum_of(dtype, headrace::DType::kF32, "dtype")}; });
}

hr_status hr_to_layout(hr_operations* chain, int32_t layout) {
  return add_operation(__func__, chain, [&] {
    return headrace::ToLayout{.to = enum_of(layout, headrace::ImageLayout::kChannelsFirst, "layout")};
  });
}

hr_status hr_layout_is(hr_operations* chain, int32_t layout, const char* field) {
  return add_operation(__func__, chain, [&] {
    return headrace::LayoutIs{.layout = enum_of(layout, headrace::ImageLayout::kChannelsFirst, "layout"),
                              .field = field == nullptr ? "image" : field};
  });
}

hr_status hr_flatten(hr_operations* chain) {
  return add_operation(__func__, chain, [&] { return headrace::FlattenSample{}; });
}

hr_status hr_resize(hr_operations* chain, int32_t size) {
  return add_operation(__func__, chain, [&] { return headrace::Resize{.size = size}; });
}

hr_status hr_resize_to(hr_operations* chain, int32_t height, int32_t width) {
  return add_operation(__func__, chain, [&] { return headrace::ResizeTo{.height = height, .width = width}; });
}

hr_status hr_center_crop(hr_operations* chain, int32_t size) {
  return add_operation(__func__, chain, [&] { return headrace::CenterCrop{.size = size}; });
}

hr_status hr_color_jitter(hr_operations* chain, float brightness, float contrast, float saturation, float hue) {
  return add_operation(__func__, chain, [&] {
    return headrace::ColorJitter{
        .brightness = brightness, .contrast = contrast, .saturation = saturation, .hue = hue};
  });
}

hr_status hr_color_jitter_with(hr_operations* chain, const hr_color_jitter_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto from = HR_READ(hr_color_jitter_options, HR_COLOR_JITTER_OPTIONS_INIT, options);
    return headrace::ColorJitter{.brightness = from.brightness,
                                 .contrast = from.contrast,
                                 .saturation = from.saturation,
                                 .hue = from.hue,
                                 .probability = from.probability};
  });
}

hr_status hr_grayscale(hr_operations* chain, int32_t channels, float probability) {
  return add_operation(__func__, chain,
                       [&] { return headrace::Grayscale{.channels = channels, .probability = probability}; });
}

hr_status hr_gaussian_blur(hr_operations* chain, int32_t kernel_size, float min_sigma, float max_sigma,
                           float probability) {
  return add_operation(__func__, chain, [&] {
    return headrace::GaussianBlur{
        .kernel_size = kernel_size, .min_sigma = min_sigma, .max_sigma = max_sigma, .probability = probability};
  });
}

hr_status hr_vertical_flip(hr_operations* chain, float probability) {
  return add_operation(__func__, chain, [&] { return headrace::VerticalFlip{.probability = probability}; });
}

hr_status hr_invert(hr_operations* chain, float probability) {
  return add_operation(__func__, chain, [&] { return headrace::Invert{.probability = probability}; });
}

hr_status hr_posterize(hr_operations* chain, int32_t bits, float probability) {
  return add_operation(__func__, chain,
                       [&] { return headrace::Posterize{.bits = bits, .probability = probability}; });
}

hr_status hr_solarize(hr_operations* chain, float threshold, float probability) {
  return add_operation(__func__, chain,
                       [&] { return headrace::Solarize{.threshold = threshold, .probability = probability}; });
}

hr_status hr_adjust_sharpness(hr_operations* chain, float factor, float probability) {
  return add_operation(__func__, chain,
                       [&] { return headrace::AdjustSharpness{.factor = factor, .probability = probability}; });
}

hr_status hr_autocontrast(hr_operations* chain, float probability) {
  return add_operation(__func__, chain, [&] { return headrace::Autocontrast{.probability = probability}; });
}

hr_status hr_equalize(hr_operations* chain, float probability) {
  return add_operation(__func__, chain, [&] { return headrace::Equalize{.probability = probability}; });
}

hr_status hr_per_image_standardization(hr_operations* chain) {
  return add_operation(__func__, chain, [&] { return headrace::PerImageStandardization{}; });
}

hr_status hr_brightness_contrast(hr_operations* chain, float brightness, float contrast) {
  return add_operation(__func__, chain, [&] {
    return headrace::BrightnessContrast{.brightness = brightness, .contrast = contrast};
  });
}

hr_status hr_cutout(hr_operations* chain, int32_t size, const float* fill, size_t channels) {
  return add_operation(__func__, chain, [&] {
    return headrace::Cutout{.size = size, .fill = headrace::c::floats_of(fill, channels, "fill")};
  });
}

hr_status hr_one_hot(hr_operations* chain, int32_t classes, float smoothing, const char* field) {
  return add_operation(__func__, chain, [&] {
    return headrace::OneHot{.classes = classes,
                            .smoothing = smoothing,
                            .field = headrace::c::text_of(field, headrace::kLabelField.c_str())};
  });
}

hr_status hr_mixup(hr_operations* chain, float alpha, float probability) {
  return add_operation(__func__, chain,
                       [&] { return headrace::Mixup{.alpha = alpha, .probability = probability}; });
}

hr_status hr_cutmix(hr_operations* chain, float alpha, float probability) {
  return add_operation(__func__, chain,
                       [&] { return headrace::Cutmix{.alpha = alpha, .probability = probability}; });
}

hr_status hr_along(hr_operations* chain, const hr_along_options* options) {
  return guarded(__func__, [&] {
    std::vector<headrace::Operation>& list = given(chain, "chain").list;
    const auto how = HR_READ(hr_along_options, HR_ALONG_OPTIONS_INIT, options);
    const headrace::Along along{
        .masks = headrace::c::texts_of(how.masks, how.mask_count, "masks"),
        .boxes = headrace::c::texts_of(how.boxes, how.box_count, "boxes"),
        .lost = enum_of(how.lost_boxes, headrace::LostBoxes::kDrop, "lost_boxes"),
        .with_boxes = headrace::c::texts_of(how.with_boxes, how.with_boxes_count, "with_boxes")};
    if (list.empty()) throw headrace::ConfigError("hr_along(): the chain is empty", "append crops or flips first");
    headrace::Operations all{list.front()};
    for (std::size_t i = 1; i < list.size(); ++i) all = all | headrace::Operations(list[i]);
    list = all.along(along).list();
  });
}

hr_status hr_random_resized_crop(hr_operations* chain, const hr_random_resized_crop_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto how = HR_READ(hr_random_resized_crop_options, HR_RANDOM_RESIZED_CROP_OPTIONS_INIT, options);
    return headrace::RandomResizedCrop{.size = how.side,
                                       .min_area = how.min_area,
                                       .max_area = how.max_area,
                                       .min_ratio = how.min_ratio,
                                       .max_ratio = how.max_ratio};
  });
}

hr_status hr_random_affine(hr_operations* chain, const hr_random_affine_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto how = HR_READ(hr_random_affine_options, HR_RANDOM_AFFINE_OPTIONS_INIT, options);
    return headrace::RandomAffine{.min_degrees = how.min_degrees,
                                  .max_degrees = how.max_degrees,
                                  .translate_x = how.translate_x,
                                  .translate_y = how.translate_y,
                                  .min_scale = how.min_scale,
                                  .max_scale = how.max_scale,
                                  .min_shear_x = how.min_shear_x,
                                  .max_shear_x = how.max_shear_x,
                                  .min_shear_y = how.min_shear_y,
                                  .max_shear_y = how.max_shear_y,
                                  .interpolation = headrace::c::interpolation_of(how.interpolation),
                                  .fill = headrace::c::fill_of(how.fill, how.fill_count),
                                  .probability = how.probability};
  });
}

hr_status hr_random_rotation(hr_operations* chain, const hr_random_rotation_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto how = HR_READ(hr_random_rotation_options, HR_RANDOM_ROTATION_OPTIONS_INIT, options);
    return headrace::RandomRotation{.min_degrees = how.min_degrees,
                                    .max_degrees = how.max_degrees,
                                    .interpolation = headrace::c::interpolation_of(how.interpolation),
                                    .fill = headrace::c::fill_of(how.fill, how.fill_count),
                                    .probability = how.probability};
  });
}

hr_status hr_random_erasing(hr_operations* chain, const hr_random_erasing_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto how = HR_READ(hr_random_erasing_options, HR_RANDOM_ERASING_OPTIONS_INIT, options);
    return headrace::RandomErasing{.probability = how.probability,
                                   .min_area = how.min_area,
                                   .max_area = how.max_area,
                                   .min_ratio = how.min_ratio,
                                   .max_ratio = how.max_ratio,
                                   .fill = headrace::c::fill_of(how.fill, how.fill_count)};
  });
}

hr_status hr_rand_augment(hr_operations* chain, const hr_rand_augment_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto how = HR_READ(hr_rand_augment_options, HR_RAND_AUGMENT_OPTIONS_INIT, options);
    return headrace::RandAugment{.operations = how.operations,
                                 .magnitude = how.magnitude,
                                 .bins = how.bins,
                                 .interpolation = headrace::c::interpolation_of(how.interpolation),
                                 .fill = headrace::c::fill_of(how.fill, how.fill_count)};
  });
}

hr_status hr_trivial_augment_wide(hr_operations* chain, const hr_trivial_augment_wide_options* options) {
  return add_operation(__func__, chain, [&] {
    const auto how = HR_READ(hr_trivial_augment_wide_options, HR_TRIVIAL_AUGMENT_WIDE_OPTIONS_INIT, options);
    return headrace::TrivialAugmentWide{.bins = how.bins,
                                        .interpolation = headrace::c::interpolation_of(how.interpolation),
                                        .fill = headrace::c::fill_of(how.fill, how.fill_count)};
  });
}
