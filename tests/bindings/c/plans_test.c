/* Every stage, operation and combination, and what a plan says of itself. */
#include "headrace/tests/bindings/c/check.h"

/* u8 images of 12 x 10 in three classes. */
static hr_source* images(void) {
  enum { kCount = 9, kPixels = 12 * 10 * 3 };
  static unsigned char pixels[kCount * kPixels];
  static int64_t labels[kCount];
  for (int i = 0; i < kCount * kPixels; ++i) pixels[i] = (unsigned char)(i * 7 % 251);
  for (int i = 0; i < kCount; ++i) labels[i] = i % 3;
  const hr_array arrays[] = {
      {.field = {.name = "image", .dtype = HR_U8, .rank = 3, .shape = {12, 10, 3}},
       .data = pixels,
       .bytes = sizeof pixels},
      {.field = {.name = "label", .dtype = HR_I64}, .data = labels, .bytes = sizeof labels}};
  static const char* const classes[] = {"a", "b", "c"};
  hr_memory_options options = HR_MEMORY_OPTIONS_INIT;
  options.name = "images";
  options.records = kCount;
  options.arrays = arrays;
  options.array_count = 2;
  options.classes = classes;
  options.class_count = 3;
  hr_source* source = NULL;
  OK(hr_source_in_memory(&options, &source));
  return source;
}

static void expect_described(hr_operations* chain, const char* words) {
  char* text = NULL;
  OK(hr_operations_describe(chain, &text));
  const size_t length = strlen(text), wanted = strlen(words);
  if (length < wanted || strstr(text, words) == NULL) fprintf(stderr, "%s has no %s\n", text, words);
  CHECK(strstr(text, words) != NULL);
  hr_string_free(text);
}

static void test_operations(void) {
  static const float mean[] = {0.5F, 0.4F, 0.3F}, std[] = {0.2F, 0.2F, 0.2F}, zero[] = {0};
  hr_operations* chain = NULL;
  OK(hr_operations_create(&chain));
  OK(hr_pad_crop(chain, 8, 2, HR_PAD_REFLECT));
  expect_described(chain, "pad_crop(8, pad=2, reflect)");
  OK(hr_flip(chain, 0.25F, HR_FLIP_EACH_PASS));
  expect_described(chain, " | flip(0.25");
  OK(hr_color_jitter(chain, 0.1F, 0.2F, 0.3F, 0.1F));
  hr_color_jitter_options jitter = HR_COLOR_JITTER_OPTIONS_INIT;
  jitter.brightness = 0.4F;
  jitter.probability = 0.8F;
  OK(hr_color_jitter_with(chain, &jitter));
  expect_described(chain, "p=0.8)");
  OK(hr_grayscale(chain, 3, 0.25F));
  OK(hr_gaussian_blur(chain, 5, 0.5F, 1, 0.75F));
  expect_described(chain, " | grayscale(3, p=0.25) | gaussian_blur(5, sigma=0.5-1, p=0.75)");
  OK(hr_normalize(chain, mean, std, 3));
  expect_described(chain, "normalize(");
  OK(hr_brightness_contrast(chain, 0.1F, 0.1F));
  OK(hr_cutout(chain, 2, zero, 1));
  expect_described(chain, "cutout(2");
  OK(hr_to_layout(chain, HR_CHANNELS_FIRST));
  OK(hr_one_hot(chain, 3, 0.1F, NULL));
  expect_described(chain, "one_hot(");
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_map(dataset, chain));
  OK(hr_dataset_batch(dataset, NULL));
  hr_operations* mixing = NULL;
  OK(hr_operations_create(&mixing));
  OK(hr_mixup(mixing, 0.2F, 1));
  OK(hr_cutmix(mixing, 1, 0.5F));
  OK(hr_dataset_map(dataset, mixing));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor(batch, "image", &tensor));
  CHECK(tensor.rank == 4 && tensor.shape[1] == 3 && tensor.shape[2] == 8 && tensor.dtype == HR_F32);
  OK(hr_batch_tensor(batch, "label", &tensor));
  CHECK(tensor.rank == 2 && tensor.shape[1] == 3 && tensor.dtype == HR_F32);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  hr_operations_free(mixing);
  hr_operations_free(chain);
}

static void test_geometry(void) {
  hr_operations *resized = NULL, *cropped = NULL;
  OK(hr_operations_create(&resized));
  OK(hr_operations_create(&cropped));
  OK(hr_resize(resized, 16));
  OK(hr_resize_to(resized, 12, 9));
  OK(hr_center_crop(resized, 6));
  OK(hr_cast(resized, HR_F32));
  OK(hr_flatten(resized));
  hr_random_resized_crop_options window = HR_RANDOM_RESIZED_CROP_OPTIONS_INIT;
  window.side = 16;
  window.min_area = 0.5F;
  OK(hr_random_resized_crop(cropped, &window));
  expect_described(cropped, "random_resized_crop(16");
  OK(hr_operations_append(cropped, resized));
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_map(dataset, cropped));
  OK(hr_dataset_batch(dataset, NULL));
  hr_field field;
  OK(hr_dataset_field(dataset, 0, &field));
  CHECK(field.rank == 1 && field.shape[0] == 6 * 6 * 3 && field.dtype == HR_F32);
  hr_dataset_free(dataset);
  hr_operations_free(cropped);
  hr_operations_free(resized);
}

static void test_augmentations(void) {
  static const float grey[] = {128}, colour[] = {1, 2, 3};
  hr_operations* chain = NULL;
  OK(hr_operations_create(&chain));
  OK(hr_random_resized_crop(chain, NULL));
  OK(hr_vertical_flip(chain, 0.25F));
  hr_random_affine_options affine = HR_RANDOM_AFFINE_OPTIONS_INIT;
  affine.max_degrees = 9;
  affine.translate_y = 0.5F;
  affine.max_scale = 2;
  affine.min_shear_y = -3;
  affine.interpolation = HR_BILINEAR;
  affine.fill = colour;
  affine.fill_count = 3;
  OK(hr_random_affine(chain, &affine));
  hr_random_rotation_options rotation = HR_RANDOM_ROTATION_OPTIONS_INIT;
  rotation.probability = 0.5F;
  OK(hr_random_rotation(chain, &rotation));
  expect_described(
      chain,
      " | vertical_flip(0.25) | random_affine(0 to 9 degrees, translate=[0, 0.5], scale=1-2, shear=[0 "
      "to 0, -3 to 0], bilinear, fill=[1, 2, 3], p=1) | random_rotation(-10 to 10 degrees, nearest, "
      "fill=[0], p=0.5)");
  OK(hr_invert(chain, 0.5F));
  OK(hr_posterize(chain, 3, 0.5F));
  OK(hr_solarize(chain, 200, 0.5F));
  OK(hr_adjust_sharpness(chain, 1.5F, 0.5F));
  OK(hr_autocontrast(chain, 0.25F));
  OK(hr_equalize(chain, 0.75F));
  expect_described(
      chain,
      " | invert(p=0.5) | posterize(3, p=0.5) | solarize(200, p=0.5) | adjust_sharpness(1.5, p=0.5) | "
      "autocontrast(p=0.25) | equalize(p=0.75)");
  hr_rand_augment_options augment = HR_RAND_AUGMENT_OPTIONS_INIT;
  augment.operations = 3;
  augment.fill = grey;
  augment.fill_count = 1;
  OK(hr_rand_augment(chain, &augment));
  OK(hr_rand_augment(chain, NULL));
  hr_trivial_augment_wide_options wide = HR_TRIVIAL_AUGMENT_WIDE_OPTIONS_INIT;
  wide.bins = 11;
  OK(hr_trivial_augment_wide(chain, &wide));
  expect_described(
      chain,
      " | rand_augment(3, 9 of 31, nearest, fill=[128]) | rand_augment(2, 9 of 31, nearest, fill=[0]) | "
      "trivial_augment_wide(11, nearest, fill=[0])");
  hr_random_erasing_options erasing = HR_RANDOM_ERASING_OPTIONS_INIT;
  erasing.max_area = 0.25F;
  OK(hr_random_erasing(chain, &erasing));
  OK(hr_per_image_standardization(chain));
  expect_described(
      chain, " | random_erasing(0.5, area=0.02-0.25, ratio=0.3-3.3, fill=[0]) | per_image_standardization()");
  wide.interpolation = 2;
  FAILS(HR_INVALID_ARGUMENT, "interpolation", hr_trivial_augment_wide(chain, &wide));
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_map(dataset, chain));
  OK(hr_dataset_batch(dataset, NULL));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor(batch, "image", &tensor));
  CHECK(tensor.rank == 4 && tensor.shape[1] == 224 && tensor.dtype == HR_F32);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  hr_operations_free(chain);
}

static void test_fields_moved_along(void) {
  const char *masks[] = {"mask"}, *boxes[] = {"boxes"};
  hr_operations *chain = NULL, *cast = NULL;
  OK(hr_operations_create(&chain));
  OK(hr_operations_create(&cast));
  hr_along_options along = HR_ALONG_OPTIONS_INIT;
  along.masks = masks;
  along.mask_count = 1;
  along.boxes = boxes;
  along.box_count = 1;
  along.lost_boxes = HR_LOST_DROP;
  FAILS(HR_INVALID_ARGUMENT, "the chain is empty", hr_along(chain, &along));
  OK(hr_flip(chain, 0.5F, HR_FLIP_EACH_PASS));
  OK(hr_cast(chain, HR_F32));
  OK(hr_along(chain, &along));
  expect_described(chain, "flip(0.5) along with masks mask and boxes boxes without the lost | cast(");
  OK(hr_cast(cast, HR_F32));
  FAILS(HR_INVALID_ARGUMENT, "no operation of the chain moves pixels", hr_along(cast, &along));
  along.lost_boxes = 5;
  FAILS(HR_INVALID_ARGUMENT, "lost_boxes = 5", hr_along(chain, &along));
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_map(dataset, chain));
  hr_field field;
  FAILS(HR_INVALID_ARGUMENT, "'mask'", hr_dataset_field(dataset, 0, &field));
  hr_dataset_free(dataset);
  hr_operations_free(cast);
  hr_operations_free(chain);
}

static void test_refused_operations(void) {
  hr_operations* chain = NULL;
  OK(hr_operations_create(&chain));
  FAILS(HR_INVALID_ARGUMENT, "padding = 5", hr_pad_crop(chain, 8, 2, 5));
  FAILS(HR_INVALID_ARGUMENT, "hr_normalize: mean is null", hr_normalize(chain, NULL, NULL, 3));
  hr_dataset* dataset = dataset_of(images());
  FAILS(HR_INVALID_ARGUMENT, "no operations", hr_dataset_map(dataset, chain));
  hr_dataset_free(dataset);
  hr_operations_free(chain);
}

static void test_stages(void) {
  hr_dataset *dataset = dataset_of(numbers(100)), *copy = NULL;
  OK(hr_dataset_copy(dataset, &copy));
  OK(hr_dataset_take(dataset, 80));
  CHECK(records_of(dataset) == 80 && records_of(copy) == 100);
  OK(hr_dataset_skip(dataset, 20));
  CHECK(records_of(dataset) == 60);
  OK(hr_dataset_shard(dataset, 3, 1));
  CHECK(records_of(dataset) == 20);
  const uint64_t chosen[] = {19, 0, 19};
  hr_dataset* few = NULL;
  OK(hr_dataset_copy(dataset, &few));
  OK(hr_dataset_select(few, chosen, 3));
  CHECK(records_of(few) == 3);
  OK(hr_dataset_select(few, chosen, 1));
  hr_dataset_info refused = HR_DATASET_INFO_INIT;
  FAILS(HR_INVALID_ARGUMENT, "number 19, at place 0 of the list, is out of range: there are 3",
        hr_dataset_describe(few, &refused));
  hr_dataset_free(few);
  OK(hr_dataset_repeat(dataset, 2));
  CHECK(records_of(dataset) == 40);
  OK(hr_dataset_without_shard(copy, 4, 0));
  CHECK(records_of(copy) == 75);
  OK(hr_dataset_shard_for_worker(copy, 5, 4, HR_SHARD_BY_ELEMENT));
  CHECK(records_of(copy) == 15);
  FAILS(HR_INVALID_ARGUMENT, "by = 3", hr_dataset_shard_for_worker(copy, 5, 4, 3));
  hr_shuffle_options shuffle = HR_SHUFFLE_OPTIONS_INIT;
  shuffle.seed = 3;
  OK(hr_dataset_shuffle(dataset, &shuffle));
  shuffle.window = 8;
  OK(hr_dataset_shuffle(dataset, &shuffle));
  hr_cache* cache = NULL;
  OK(hr_cache_memory(0, &cache));
  OK(hr_dataset_cache(dataset, cache));
  hr_batch_options batch = {.size = sizeof batch, .global = 16, .drop_remainder = true};
  OK(hr_dataset_batch(dataset, &batch));
  OK(hr_dataset_prefetch(dataset, 3));
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(dataset, &info));
  CHECK(info.records == 40 && info.steps_per_epoch == 2 && info.fingerprint != 0 && info.field_count == 1);
  char* text = NULL;
  hr_devices* devices = cpus(2);
  OK(hr_dataset_explain(dataset, devices, &text));
  CHECK(strstr(text, "shuffle") != NULL && strstr(text, "cache") != NULL && strstr(text, "batch") != NULL);
  hr_string_free(text);
  OK(hr_dataset_explain(dataset, NULL, &text));
  hr_string_free(text);
  hr_devices_free(devices);
  hr_cache_free(cache);
  hr_dataset_free(dataset);
  hr_dataset_free(copy);
}

static void test_labels(void) {
  static const int64_t wanted[] = {0, 2};
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_filter_labels(dataset, wanted, 2));
  CHECK(records_of(dataset) == 6);
  const char* name = NULL;
  OK(hr_dataset_class(dataset, 1, &name));
  CHECK(strcmp(name, "b") == 0);
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(dataset, &info));
  CHECK(info.steps_per_epoch == HR_UNKNOWN && info.class_count == 3);
  hr_dataset_free(dataset);
}

static void test_unbatch(void) {
  static const int32_t pairs[] = {1, 2, 3, 4, 5, 6};
  const hr_array array = {
      .field = {.name = "pair", .dtype = HR_I32, .rank = 1, .shape = {2}}, .data = pairs, .bytes = sizeof pairs};
  hr_memory_options options = HR_MEMORY_OPTIONS_INIT;
  options.records = 3;
  options.arrays = &array;
  options.array_count = 1;
  hr_source* source = NULL;
  OK(hr_source_in_memory(&options, &source));
  hr_dataset* dataset = dataset_of(source);
  OK(hr_dataset_unbatch(dataset));
  CHECK(records_of(dataset) == 6);
  hr_dataset_free(dataset);
}

static hr_status make_words(void* user, uint64_t index, hr_record* record) {
  (void)user;
  static const unsigned char letters[] = "abcdef";
  return hr_record_put(record, 0, letters, (size_t)index + 1);
}

static void test_padded_batch(void) {
  const hr_field word = {.name = "word", .dtype = HR_U8, .rank = 1, .shape = {HR_DYNAMIC}};
  hr_generator_options words = HR_GENERATOR_OPTIONS_INIT;
  words.fields = &word;
  words.field_count = 1;
  words.records = 5;
  words.make = make_words;
  hr_source* source = NULL;
  OK(hr_source_generator(&words, &source));
  hr_dataset* dataset = dataset_of(source);
  const hr_pad_field pad = {.field = "word", .length = 6, .value = '-'};
  hr_padded_batch_options options = HR_PADDED_BATCH_OPTIONS_INIT;
  options.global = 5;
  options.pad = &pad;
  options.pad_count = 1;
  OK(hr_dataset_padded_batch(dataset, &options));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor(batch, "word", &tensor));
  CHECK(memcmp((const char*)tensor.data + 6, "ab----", 6) == 0);
  CHECK(value_of(batch, "word_length", 4) == 5);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_ragged_batch(void) {
  const hr_field word = {.name = "word", .dtype = HR_U8, .rank = 1, .shape = {HR_DYNAMIC}};
  hr_generator_options words = HR_GENERATOR_OPTIONS_INIT;
  words.fields = &word;
  words.field_count = 1;
  words.records = 5;
  words.make = make_words;
  hr_source* source = NULL;
  OK(hr_source_generator(&words, &source));
  hr_dataset* dataset = dataset_of(source);
  const hr_ragged_field field = {.field = "word", .max_length = 9};
  hr_ragged_batch_options options = HR_RAGGED_BATCH_OPTIONS_INIT;
  options.global = 3;
  options.fields = &field;
  options.field_count = 1;
  OK(hr_dataset_ragged_batch(dataset, &options));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch_free(next_of(loader));
  hr_batch* batch = next_of(loader);
  hr_batch_info info = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &info));
  CHECK(info.rows == 3 && info.examples == 2);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor(batch, "word", &tensor));
  CHECK(tensor.shape[0] == 9 && memcmp(tensor.data, "abcdabcde", 9) == 0);
  CHECK(value_of(batch, "word_offsets", 0) == 0 && value_of(batch, "word_offsets", 1) == 4);
  CHECK(value_of(batch, "word_offsets", 2) == 9 && value_of(batch, "word_offsets", 3) == 9);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_bucket_by_length(void) {
  const hr_field word = {.name = "word", .dtype = HR_U8, .rank = 1, .shape = {HR_DYNAMIC}};
  hr_generator_options words = HR_GENERATOR_OPTIONS_INIT;
  words.fields = &word;
  words.field_count = 1;
  words.records = 5;
  words.make = make_words;
  hr_source* source = NULL;
  OK(hr_source_generator(&words, &source));
  hr_dataset* dataset = dataset_of(source);
  OK(hr_dataset_enumerate(dataset, NULL));
  static const int64_t boundaries[] = {2}, sizes[] = {3, 2};
  hr_bucket_options options = HR_BUCKET_OPTIONS_INIT;
  options.field = "word";
  options.boundaries = boundaries;
  options.boundary_count = 1;
  options.batch_sizes = sizes;
  options.batch_size_count = 2;
  options.drop_remainder = true;
  OK(hr_dataset_bucket_by_length(dataset, &options));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor(batch, "word", &tensor));
  CHECK(tensor.shape[0] == 2 && tensor.shape[1] == 5);
  CHECK(memcmp(tensor.data, "abc\0\0abcd\0", 10) == 0);
  CHECK(value_of(batch, "index", 1) == 3);
  hr_batch_free(batch);
  CHECK(next_of(loader) == NULL);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_combinations(void) {
  hr_dataset *first = dataset_of(numbers(6)), *other = dataset_of(numbers(4)), *all = NULL;
  const hr_dataset* const parts[] = {first, other};
  OK(hr_dataset_concatenate(parts, 2, &all));
  CHECK(records_of(all) == 10);
  hr_dataset_free(all);
  OK(hr_dataset_interleave(parts, 2, 2, &all));
  CHECK(records_of(all) == 10);
  hr_dataset_free(all);
  static const double weights[] = {1, 1};
  hr_mix_options mix = HR_MIX_OPTIONS_INIT;
  mix.weights = weights;
  OK(hr_dataset_mix(parts, 2, &mix, &all));
  CHECK(records_of(all) >= 8 && records_of(all) <= 9);
  hr_dataset_free(all);
  OK(hr_dataset_mix(parts, 2, NULL, &all));
  CHECK(records_of(all) == 10);
  hr_dataset_free(all);
  static const char* const suffixes[] = {"_a", "_b"};
  OK(hr_dataset_zip(parts, 2, suffixes, false, &all));
  CHECK(records_of(all) == 4);
  hr_field field;
  OK(hr_dataset_field(all, 1, &field));
  CHECK(strcmp(field.name, "value_b") == 0);
  hr_dataset_free(all);
  all = NULL;
  FAILS(HR_INVALID_ARGUMENT, "value", hr_dataset_zip(parts, 2, NULL, false, &all));
  FAILS(HR_INVALID_ARGUMENT, "", hr_dataset_concatenate(parts, 0, &all));
  CHECK(all == NULL);
  hr_dataset_free(first);
  hr_dataset_free(other);
}

static void test_caches(void) {
  for (int disk = 0; disk < 2; ++disk) {
    hr_cache* cache = NULL;
    if (disk) {
      OK(hr_cache_disk("cache-of-the-test", 0, 0, &cache));
    } else {
      OK(hr_cache_memory(0, &cache));
    }
    hr_dataset* dataset = dataset_of(images());
    hr_operations* chain = NULL;
    OK(hr_operations_create(&chain));
    OK(hr_center_crop(chain, 8));
    OK(hr_dataset_map(dataset, chain));
    OK(hr_dataset_cache(dataset, cache));
    OK(hr_dataset_batch(dataset, NULL));
    hr_loader_options options = HR_LOADER_OPTIONS_INIT;
    options.epochs = 2;
    hr_loader* loader = loader_of(dataset, &options);
    for (hr_batch* batch = next_of(loader); batch != NULL; batch = next_of(loader)) hr_batch_free(batch);
    hr_cache_stats stats = HR_CACHE_STATS_INIT;
    OK(hr_cache_read_stats(cache, &stats));
    CHECK(stats.records == 9 && stats.hits >= 9);
    char* trouble = NULL;
    OK(hr_cache_trouble(cache, &trouble));
    CHECK(strcmp(trouble, "") == 0);
    hr_string_free(trouble);
    hr_loader_free(loader);
    hr_dataset_free(dataset);
    hr_operations_free(chain);
    hr_cache_free(cache);
  }
}

int main(void) {
  test_operations();
  test_geometry();
  test_augmentations();
  test_fields_moved_along();
  test_refused_operations();
  test_stages();
  test_labels();
  test_unbatch();
  test_padded_batch();
  test_ragged_batch();
  test_bucket_by_length();
  test_combinations();
  test_caches();
  return end_of_test();
}
