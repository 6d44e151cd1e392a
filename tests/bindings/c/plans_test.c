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

/* An operation, its options, and what the chain says of it. */
static const struct {
  const char *name, *options, *described;
} kOperations[] = {
    {"pad_crop", "{\"size\": 8, \"pad\": 2, \"padding\": \"reflect\"}",
     "pad_crop(size=8, pad=2, padding=reflect)"},
    {"flip", "{\"probability\": 0.25}", " | flip(probability=0.25"},
    {"color_jitter", "{\"brightness\": 0.4, \"probability\": 0.8}", "probability=0.8)"},
    {"gaussian_blur", "{\"kernel_size\": 5, \"min_sigma\": 0.5, \"max_sigma\": 1}",
     " | gaussian_blur(kernel_size=5, min_sigma=0.5, max_sigma=1"},
    {"random_rotation", NULL,
     " | random_rotation(min_degrees=-10, max_degrees=10, interpolation=nearest, fill=[0]"},
    {"rand_augment", "{\"operations\": 3, \"fill\": [128]}", " | rand_augment(operations=3, magnitude=9, bins=31"},
    {"normalize", "{\"mean\": [0.5, 0.4, 0.3], \"std\": [0.2, 0.2, 0.2]}", " | normalize("},
    {"to_layout", "{\"layout\": \"channels_first\"}", " | to_layout(layout=channels_first"},
    {"one_hot", "{\"classes\": 3, \"smoothing\": 0.1}", " | one_hot("},
};

static void test_operations(void) {
  hr_operations *chain = NULL, *all = NULL;
  OK(hr_operations_create(&chain));
  OK(hr_operations_create(&all));
  for (size_t i = 0; i < sizeof kOperations / sizeof *kOperations; ++i) {
    OK(hr_operations_add(chain, kOperations[i].name, kOperations[i].options));
    expect_described(chain, kOperations[i].described);
  }
  OK(hr_operations_append(all, chain));
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_map(dataset, all));
  hr_field planes;
  OK(hr_dataset_field(dataset, 0, &planes));
  CHECK(planes.layout == HR_CHANNELS_FIRST && planes.shape[0] == 3);
  OK(hr_dataset_add(dataset, "batch", NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"mixup\": {\"alpha\": 0.2}}, {\"cutmix\": {}}]"));
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
  hr_operations_free(all);
  hr_operations_free(chain);
}

// An array says its layout; to_layout() says that of its result.
static void test_layouts(void) {
  static const unsigned char pixels[2 * 5 * 8 * 9];
  for (int32_t layout = HR_LAYOUT_UNSAID; layout <= HR_CHANNELS_FIRST + 1; ++layout) {
    const hr_array array = {
        .field = {.name = "image", .dtype = HR_U8, .rank = 3, .shape = {5, 8, 9}, .layout = layout},
        .data = pixels,
        .bytes = sizeof pixels};
    hr_memory_options options = HR_MEMORY_OPTIONS_INIT;
    options.records = 2;
    options.arrays = &array;
    options.array_count = 1;
    hr_source* source = NULL;
    if (layout > HR_CHANNELS_FIRST) {
      FAILS(HR_INVALID_ARGUMENT, "layout = 3", hr_source_in_memory(&options, &source));
      continue;
    }
    OK(hr_source_in_memory(&options, &source));
    hr_field field;
    OK(hr_source_field(source, 0, &field));
    CHECK(field.layout == layout);
    hr_dataset* dataset = dataset_of(source);
    OK(hr_dataset_add(dataset, "map", "[{\"to_layout\": {\"layout\": \"channels_last\"}}]"));
    if (layout == HR_LAYOUT_UNSAID) {
      FAILS(HR_INVALID_ARGUMENT, "nothing says where they are", hr_dataset_field(dataset, 0, &field));
    } else {
      OK(hr_dataset_field(dataset, 0, &field));
      CHECK(field.layout == HR_CHANNELS_LAST && field.shape[2] == (layout == HR_CHANNELS_LAST ? 9 : 5));
    }
    hr_dataset_free(dataset);
  }
}

static void test_refused_operations(void) {
  hr_operations* chain = NULL;
  OK(hr_operations_create(&chain));
  FAILS(HR_INVALID_ARGUMENT, "there is no operation \"flop\"", hr_operations_add(chain, "flop", NULL));
  FAILS(HR_INVALID_ARGUMENT, "pad_crop.padding",
        hr_operations_add(chain, "pad_crop", "{\"padding\": \"mirror\"}"));
  FAILS(HR_INVALID_ARGUMENT, "sise", hr_operations_add(chain, "pad_crop", "{\"sise\": 8}"));
  FAILS(HR_INVALID_ARGUMENT, "line 1", hr_operations_add(chain, "pad_crop", "{size: 8}"));
  hr_dataset* dataset = dataset_of(images());
  FAILS(HR_INVALID_ARGUMENT, "no operations", hr_dataset_map(dataset, chain));
  FAILS(HR_INVALID_ARGUMENT, "map", hr_dataset_add(dataset, "map", NULL));
  FAILS(HR_INVALID_ARGUMENT, "map[0].flip.probability",
        hr_dataset_add(dataset, "map", "[{\"flip\": {\"probability\": \"often\"}}]"));
  FAILS(HR_INVALID_ARGUMENT, "there is no stage \"shufle\"", hr_dataset_add(dataset, "shufle", NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"flip\": {\"masks\": [\"mask\"]}}]"));
  hr_field field;
  FAILS(HR_INVALID_ARGUMENT, "'mask'", hr_dataset_field(dataset, 0, &field));
  hr_dataset_free(dataset);
  hr_operations_free(chain);
}

static void test_stages(void) {
  hr_dataset *dataset = dataset_of(numbers(100)), *copy = NULL;
  OK(hr_dataset_copy(dataset, &copy));
  OK(hr_dataset_add(dataset, "take", "{\"count\": 80}"));
  CHECK(records_of(dataset) == 80 && records_of(copy) == 100);
  OK(hr_dataset_add(dataset, "skip", "{\"count\": 20}"));
  CHECK(records_of(dataset) == 60);
  OK(hr_dataset_add(dataset, "shard", "{\"count\": 3, \"index\": 1}"));
  CHECK(records_of(dataset) == 20);
  hr_dataset* few = NULL;
  OK(hr_dataset_copy(dataset, &few));
  OK(hr_dataset_add(few, "select", "{\"numbers\": [19, 0, 19]}"));
  CHECK(records_of(few) == 3);
  OK(hr_dataset_add(few, "select", "{\"numbers\": [19]}"));
  hr_dataset_info refused = HR_DATASET_INFO_INIT;
  FAILS(HR_INVALID_ARGUMENT, "number 19, at place 0 of the list, is out of range: there are 3",
        hr_dataset_describe(few, &refused));
  hr_dataset_free(few);
  OK(hr_dataset_add(dataset, "repeat", "{\"times\": 2}"));
  CHECK(records_of(dataset) == 40);
  OK(hr_dataset_add(copy, "without_shard", "{\"count\": 4, \"index\": 0}"));
  CHECK(records_of(copy) == 75);
  OK(hr_dataset_add(copy, "shard_for_worker", "{\"count\": 5, \"index\": 4, \"by\": \"element\"}"));
  CHECK(records_of(copy) == 15);
  FAILS(HR_INVALID_ARGUMENT, "shard_for_worker.by",
        hr_dataset_add(copy, "shard_for_worker", "{\"count\": 5, \"index\": 4, \"by\": \"record\"}"));
  OK(hr_dataset_add(dataset, "shuffle", "{\"seed\": 3}"));
  OK(hr_dataset_add(dataset, "shuffle_window", "{\"seed\": 3, \"size\": 8}"));
  hr_cache* cache = NULL;
  OK(hr_cache_memory(0, &cache));
  OK(hr_dataset_cache(dataset, cache));
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 16, \"drop_remainder\": true}"));
  OK(hr_dataset_add(dataset, "prefetch", "{\"batches\": 3}"));
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
  hr_dataset* dataset = dataset_of(images());
  OK(hr_dataset_add(dataset, "filter", "{\"labels\": [0, 2]}"));
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
  OK(hr_dataset_add(dataset, "unbatch", NULL));
  CHECK(records_of(dataset) == 6);
  hr_dataset_free(dataset);
}

static hr_status make_words(void* user, uint64_t index, hr_record* record) {
  (void)user;
  static const unsigned char letters[] = "abcdef";
  return hr_record_put(record, 0, letters, (size_t)index + 1);
}

static hr_dataset* words(void) {
  const hr_field word = {.name = "word", .dtype = HR_U8, .rank = 1, .shape = {HR_DYNAMIC}};
  hr_generator_options options = HR_GENERATOR_OPTIONS_INIT;
  options.fields = &word;
  options.field_count = 1;
  options.records = 5;
  options.make = make_words;
  hr_source* source = NULL;
  OK(hr_source_generator(&options, &source));
  return dataset_of(source);
}

static void test_padded_batch(void) {
  hr_dataset* dataset = words();
  OK(hr_dataset_add(dataset, "padded_batch",
                    "{\"global_batch\": 5, \"pad\": [{\"field\": \"word\", \"length\": 6, \"value\": 45}]}"));
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
  hr_dataset* dataset = words();
  OK(hr_dataset_add(dataset, "ragged_batch",
                    "{\"global_batch\": 3, \"fields\": [{\"field\": \"word\", \"max_length\": 9}]}"));
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
  hr_dataset* dataset = words();
  OK(hr_dataset_add(dataset, "enumerate", NULL));
  OK(hr_dataset_add(
      dataset, "bucket_by_length",
      "{\"field\": \"word\", \"boundaries\": [2], \"batch_sizes\": [3, 2], \"drop_remainder\": true}"));
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
  static const struct {
    const char *how, *options;
    uint64_t least, most;
  } kinds[] = {{"concatenate", NULL, 10, 10},
               {"interleave", "{\"block\": 2}", 10, 10},
               {"mix", "{\"weights\": [1, 1]}", 8, 9},
               {"mix", NULL, 10, 10}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    OK(hr_dataset_combine(kinds[i].how, kinds[i].options, parts, 2, &all));
    CHECK(records_of(all) >= kinds[i].least && records_of(all) <= kinds[i].most);
    hr_dataset_free(all);
  }
  OK(hr_dataset_combine("zip", "{\"suffixes\": [\"_a\", \"_b\"], \"strict\": false}", parts, 2, &all));
  CHECK(records_of(all) == 4);
  hr_field field;
  OK(hr_dataset_field(all, 1, &field));
  CHECK(strcmp(field.name, "value_b") == 0);
  hr_dataset_free(all);
  all = NULL;
  FAILS(HR_INVALID_ARGUMENT, "value", hr_dataset_combine("zip", "{\"strict\": false}", parts, 2, &all));
  FAILS(HR_INVALID_ARGUMENT, "mix.seed", hr_dataset_combine("mix", "{\"seed\": -1}", parts, 2, &all));
  FAILS(HR_INVALID_ARGUMENT, "there is no combination \"join\"", hr_dataset_combine("join", NULL, parts, 2, &all));
  FAILS(HR_INVALID_ARGUMENT, "", hr_dataset_combine("concatenate", NULL, parts, 0, &all));
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
    OK(hr_dataset_add(dataset, "map", "[{\"center_crop\": {\"size\": 8}}]"));
    OK(hr_dataset_cache(dataset, cache));
    OK(hr_dataset_add(dataset, "batch", NULL));
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
    hr_cache_free(cache);
  }
}

int main(void) {
  test_operations();
  test_layouts();
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
