/* Operations on samples. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_OPERATIONS_H_
#define HEADRACE_C_OPERATIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/errors.h"
#include "headrace/c/records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A chain, applied from left to right. Each call appends one operation; pipeline/operation.h documents them. */
typedef struct hr_operations hr_operations;

enum { HR_PAD_ZERO = 0, HR_PAD_REFLECT = 1 };
enum { HR_FLIP_EACH_PASS = 0, HR_FLIP_ALTERNATING = 1 };
enum { HR_NEAREST = 0, HR_BILINEAR = 1 };
enum { HR_CHANNELS_LAST = 0, HR_CHANNELS_FIRST = 1 };

HR_API hr_status hr_operations_create(hr_operations** chain);
HR_API void hr_operations_free(hr_operations* chain);
/* Appends all operations of another chain. */
HR_API hr_status hr_operations_append(hr_operations* chain, const hr_operations* other);
/* Returns text such as "pad_crop(32, pad=4, zero) | flip(0.5)". */
HR_API hr_status hr_operations_describe(const hr_operations* chain, char** text);

HR_API hr_status hr_pad_crop(hr_operations* chain, int32_t size, int32_t pad, int32_t padding);
HR_API hr_status hr_flip(hr_operations* chain, float probability, int32_t draw);
/* `mean` and `std` have `channels` entries each; 1: the same for all channels. */
HR_API hr_status hr_normalize(hr_operations* chain, const float* mean, const float* std, size_t channels);
HR_API hr_status hr_cast(hr_operations* chain, int32_t dtype);
HR_API hr_status hr_to_layout(hr_operations* chain, int32_t layout);
/* Says where the channels are and changes nothing; `field` may be null: "image". */
HR_API hr_status hr_layout_is(hr_operations* chain, int32_t layout, const char* field);
HR_API hr_status hr_flatten(hr_operations* chain);
/* The shorter side to `size`; the aspect is kept. */
HR_API hr_status hr_resize(hr_operations* chain, int32_t size);
HR_API hr_status hr_resize_to(hr_operations* chain, int32_t height, int32_t width);
HR_API hr_status hr_center_crop(hr_operations* chain, int32_t size);
HR_API hr_status hr_color_jitter(hr_operations* chain, float brightness, float contrast, float saturation,
                                 float hue);
typedef struct hr_color_jitter_options {
  size_t size;
  float brightness;
  float contrast;
  float saturation;
  float hue;
  float probability; /* to change an image at all */
} hr_color_jitter_options;
#define HR_COLOR_JITTER_OPTIONS_INIT \
  { sizeof(hr_color_jitter_options), 0, 0, 0, 0, 1 }
HR_API hr_status hr_color_jitter_with(hr_operations* chain, const hr_color_jitter_options* options);
HR_API hr_status hr_grayscale(hr_operations* chain, int32_t channels, float probability);
HR_API hr_status hr_gaussian_blur(hr_operations* chain, int32_t kernel_size, float min_sigma, float max_sigma,
                                  float probability);
HR_API hr_status hr_vertical_flip(hr_operations* chain, float probability);
HR_API hr_status hr_invert(hr_operations* chain, float probability);
HR_API hr_status hr_posterize(hr_operations* chain, int32_t bits, float probability);
HR_API hr_status hr_solarize(hr_operations* chain, float threshold, float probability);
HR_API hr_status hr_adjust_sharpness(hr_operations* chain, float factor, float probability);
HR_API hr_status hr_autocontrast(hr_operations* chain, float probability);
HR_API hr_status hr_equalize(hr_operations* chain, float probability);
HR_API hr_status hr_per_image_standardization(hr_operations* chain);
HR_API hr_status hr_brightness_contrast(hr_operations* chain, float brightness, float contrast);
HR_API hr_status hr_cutout(hr_operations* chain, int32_t size, const float* fill, size_t channels);
/* `field` may be null: "label". */
HR_API hr_status hr_one_hot(hr_operations* chain, int32_t classes, float smoothing, const char* field);
HR_API hr_status hr_mixup(hr_operations* chain, float alpha, float probability);
HR_API hr_status hr_cutmix(hr_operations* chain, float alpha, float probability);

enum { HR_LOST_ZERO = 0, HR_LOST_DROP = 1 };
typedef struct hr_along_options {
  size_t size;
  const char* const* masks; /* (H, W, C), as high and wide as the image */
  size_t mask_count;
  const char* const* boxes; /* (N, 4) or (4): left, top, right, bottom in pixels */
  size_t box_count;
  int32_t lost_boxes;            /* what becomes of a box of which nothing is left */
  const char* const* with_boxes; /* fields whose rows are dropped with lost boxes; Along in C++ */
  size_t with_boxes_count;
} hr_along_options;
#define HR_ALONG_OPTIONS_INIT \
  { sizeof(hr_along_options), NULL, 0, NULL, 0, HR_LOST_ZERO, NULL, 0 }
/* Lets all crops, flips, rotations and resizes of the chain so far move these fields with the image; Along in C++.
 */
HR_API hr_status hr_along(hr_operations* chain, const hr_along_options* options);

typedef struct hr_random_resized_crop_options {
  size_t size;
  int32_t side; /* of the result */
  float min_area;
  float max_area;
  float min_ratio;
  float max_ratio;
} hr_random_resized_crop_options;
#define HR_RANDOM_RESIZED_CROP_OPTIONS_INIT \
  { sizeof(hr_random_resized_crop_options), 224, 0.08F, 1.0F, 3.0F / 4, 4.0F / 3 }
HR_API hr_status hr_random_resized_crop(hr_operations* chain, const hr_random_resized_crop_options* options);

/* `fill` of the next structs: null is 0, else `fill_count` levels, one for all channels or one a channel. */
typedef struct hr_random_affine_options {
  size_t size;
  float min_degrees; /* clockwise */
  float max_degrees;
  float translate_x; /* parts of the width and height */
  float translate_y;
  float min_scale;
  float max_scale;
  float min_shear_x;
  float max_shear_x;
  float min_shear_y;
  float max_shear_y;
  int32_t interpolation;
  float probability;
  const float* fill;
  size_t fill_count;
} hr_random_affine_options;
#define HR_RANDOM_AFFINE_OPTIONS_INIT \
  { sizeof(hr_random_affine_options), 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, HR_NEAREST, 1, NULL, 0 }
HR_API hr_status hr_random_affine(hr_operations* chain, const hr_random_affine_options* options);

typedef struct hr_random_rotation_options {
  size_t size;
  float min_degrees; /* counter-clockwise */
  float max_degrees;
  int32_t interpolation;
  float probability;
  const float* fill;
  size_t fill_count;
} hr_random_rotation_options;
#define HR_RANDOM_ROTATION_OPTIONS_INIT \
  { sizeof(hr_random_rotation_options), -10, 10, HR_NEAREST, 1, NULL, 0 }
HR_API hr_status hr_random_rotation(hr_operations* chain, const hr_random_rotation_options* options);

typedef struct hr_random_erasing_options {
  size_t size;
  float probability;
  float min_area;
  float max_area;
  float min_ratio;
  float max_ratio;
  const float* fill; /* in the units of the elements */
  size_t fill_count;
} hr_random_erasing_options;
#define HR_RANDOM_ERASING_OPTIONS_INIT \
  { sizeof(hr_random_erasing_options), 0.5F, 0.02F, 0.33F, 0.3F, 3.3F, NULL, 0 }
HR_API hr_status hr_random_erasing(hr_operations* chain, const hr_random_erasing_options* options);

typedef struct hr_rand_augment_options {
  size_t size;
  int32_t operations;
  int32_t magnitude; /* of the bins */
  int32_t bins;
  int32_t interpolation;
  const float* fill;
  size_t fill_count;
} hr_rand_augment_options;
#define HR_RAND_AUGMENT_OPTIONS_INIT \
  { sizeof(hr_rand_augment_options), 2, 9, 31, HR_NEAREST, NULL, 0 }
HR_API hr_status hr_rand_augment(hr_operations* chain, const hr_rand_augment_options* options);

typedef struct hr_trivial_augment_wide_options {
  size_t size;
  int32_t bins;
  int32_t interpolation;
  const float* fill;
  size_t fill_count;
} hr_trivial_augment_wide_options;
#define HR_TRIVIAL_AUGMENT_WIDE_OPTIONS_INIT \
  { sizeof(hr_trivial_augment_wide_options), 31, HR_NEAREST, NULL, 0 }
HR_API hr_status hr_trivial_augment_wide(hr_operations* chain, const hr_trivial_augment_wide_options* options);

/* Random numbers of one record in one pass, independent of who draws them and when. Valid for one call. */
typedef struct hr_random hr_random;
HR_API uint32_t hr_random_bits(hr_random* random);                  /* uniform over all 2^32 values */
HR_API float hr_random_uniform(hr_random* random);                  /* in [0, 1) */
HR_API uint32_t hr_random_below(hr_random* random, uint32_t bound); /* in [0, bound); bound > 0 */

/* A custom function on one field, which keeps its name: reads `in`, fills all of `out`. Several threads call it at
 * once. REQUIRES: it is pure. */
typedef struct hr_user_map_options {
  size_t size;
  const char* name;
  uint32_t version;  /* part of every fingerprint: change it with the function */
  const char* field; /* null: "image" */
  hr_field output;   /* dtype and shape of the result */
  hr_status (*function)(void* user, const void* in, size_t in_bytes, const int64_t* in_shape, size_t in_rank,
                        void* out, size_t out_bytes, hr_random* random);
  hr_user user;
} hr_user_map_options;
#define HR_USER_MAP_OPTIONS_INIT                                                                     \
  {                                                                                                  \
    sizeof(hr_user_map_options), NULL, 1, NULL, {NULL, HR_F32, HR_RAW, 0, {0}}, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_user_map(hr_operations* chain, const hr_user_map_options* options);

/* A custom operation's view of one record. Valid for one call. */
typedef struct hr_sample hr_sample;
/* Returns the bytes of the input with this zero-based index: elements, or an encoded image's file. `shape`
 * (HR_MAX_RANK entries) and `rank` may be null. */
HR_API hr_status hr_sample_input(const hr_sample* sample, size_t input, const void** data, size_t* bytes,
                                 int64_t* shape, size_t* rank);
/* Returns the whole output, uninitialised. REQUIRES: it is filled before the function returns. */
HR_API hr_status hr_sample_output(hr_sample* sample, size_t output, void** room, size_t* bytes);
HR_API hr_status hr_sample_position(const hr_sample* sample, uint64_t* record, uint64_t* pass);
HR_API hr_random* hr_sample_random(hr_sample* sample);

/* A custom operation on any fields, which reads some, replaces some and adds others. Pure, like a user map. */
typedef struct hr_user_operation_options {
  size_t size;
  const char* name;
  uint32_t version;
  bool each_pass_anew;       /* draws random numbers or depends on the pass */
  const char* const* inputs; /* null: "image" */
  size_t input_count;
  const hr_field* outputs;
  size_t output_count;
  hr_status (*function)(void* user, hr_sample* sample);
  hr_user user;
} hr_user_operation_options;
#define HR_USER_OPERATION_OPTIONS_INIT                                                        \
  {                                                                                           \
    sizeof(hr_user_operation_options), NULL, 1, false, NULL, 0, NULL, 0, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_user_operation(hr_operations* chain, const hr_user_operation_options* options);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_OPERATIONS_H_ */
