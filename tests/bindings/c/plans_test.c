/* Every stage, operation and combination, and what a plan says of itself. */
#include "headrace/tests/bindings/c/check.h"

/* u8 images of 12 x 10 in three classes. */
static hr_dataset* images(void) {
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
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_arrays(arrays, 2, kCount, "{\"name\": \"images\", \"classes\": [\"a\", \"b\", \"c\"]}",
                            &dataset));
  return dataset;
}

/* The first batch of the plan, which is freed. */
static hr_batch* first_batch(hr_dataset* dataset) {
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  return batch;
}

/* Operations, and what the plan says of each. */
static const char* const kOperations[][2] = {
    {"{\"pad_crop\": {\"size\": 8, \"pad\": 2, \"padding\": \"reflect\"}}",
     "pad_crop(size=8, pad=2, padding=reflect)"},
    {"{\"flip\": {\"probability\": 0.25}}", "\nflip(probability=0.25"},
    {"{\"color_jitter\": {\"brightness\": 0.4, \"probability\": 0.8}}", "probability=0.8)"},
    {"{\"gaussian_blur\": {\"kernel_size\": 5, \"sigma\": [0.5, 1]}}",
     "\ngaussian_blur(kernel_size=5, sigma=[0.5, 1]"},
    {"{\"random_rotation\": {}}",
     "\nrandom_rotation(degrees=[-10, 10], interpolation=nearest, fill=[0]"},
    {"{\"rand_augment\": {\"operations\": 3, \"fill\": [128]}}",
     "\nrand_augment(operations=3, magnitude=9, bins=31"},
    {"{\"normalize\": {\"mean\": [0.5, 0.4, 0.3], \"std\": [0.2, 0.2, 0.2]}}", "\nnormalize("},
    {"{\"to_layout\": {\"layout\": \"channels_first\"}}", "\nto_layout(layout=channels_first"},
    {"{\"one_hot\": {\"classes\": 3, \"smoothing\": 0.1}}", "\none_hot("},
};

static void test_operations(void) {
  char chain[1024] = "[";
  for (size_t i = 0; i < sizeof kOperations / sizeof *kOperations; ++i)
    snprintf(chain + strlen(chain), sizeof chain - strlen(chain), "%s%s", i == 0 ? "" : ", ", kOperations[i][0]);
  strcat(chain, "]");
  hr_dataset* dataset = images();
  OK(hr_dataset_add(dataset, "map", chain, NULL));
  for (size_t i = 0; i < sizeof kOperations / sizeof *kOperations; ++i)
    SAYS(kOperations[i][1], hr_dataset_explain(dataset, NULL, &text));
  CHECK(field_at(dataset, 0).layout == HR_CHANNELS_FIRST && field_at(dataset, 0).shape[0] == 3);
  OK(hr_dataset_add(dataset, "batch", NULL, NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"mixup\": {\"alpha\": 0.2}}, {\"cutmix\": {}}]", NULL));
  hr_batch* batch = first_batch(dataset);
  hr_tensor tensor = tensor_of(batch, "image");
  CHECK(tensor.rank == 4 && tensor.shape[1] == 3 && tensor.shape[2] == 8 && tensor.dtype == HR_F32);
  tensor = tensor_of(batch, "label");
  CHECK(tensor.rank == 2 && tensor.shape[1] == 3 && tensor.dtype == HR_F32);
  hr_batch_free(batch);
}

/* An array says its layout; to_layout() says that of its result. */
static void test_layouts(void) {
  static const unsigned char pixels[2 * 5 * 8 * 9];
  for (int32_t layout = HR_LAYOUT_UNSAID; layout <= HR_CHANNELS_FIRST + 1; ++layout) {
    const hr_array array = {
        .field = {.name = "image", .dtype = HR_U8, .rank = 3, .shape = {5, 8, 9}, .layout = layout},
        .data = pixels,
        .bytes = sizeof pixels};
    hr_dataset* dataset = NULL;
    if (layout > HR_CHANNELS_FIRST) {
      FAILS(HR_INVALID_ARGUMENT, "layout = 3", hr_dataset_from_arrays(&array, 1, 2, NULL, &dataset));
      continue;
    }
    OK(hr_dataset_from_arrays(&array, 1, 2, NULL, &dataset));
    hr_field field = field_at(dataset, 0);
    CHECK(field.layout == layout);
    OK(hr_dataset_add(dataset, "map", "[{\"to_layout\": {\"layout\": \"channels_last\"}}]", NULL));
    if (layout == HR_LAYOUT_UNSAID) {
      FAILS(HR_INVALID_ARGUMENT, "nothing says where they are", hr_dataset_field(dataset, 0, &field));
    } else {
      field = field_at(dataset, 0);
      CHECK(field.layout == HR_CHANNELS_LAST && field.shape[2] == (layout == HR_CHANNELS_LAST ? 9 : 5));
    }
    hr_dataset_free(dataset);
  }
}

static void test_refusals(void) {
  static const char* const refused[][3] = {
      {"shufle", NULL, "there is no stage \"shufle\": did you mean 'shuffle'?"},
      {"shuffle", "{\"sede\": 7}", "plan at shuffle: there is no option \"sede\": did you mean 'seed'?"},
      {"shuffle", "{seed: 7}", "line 1"},
      {"map", NULL, "map"},
      {"map", "[]", "a map without operations"},
      {"map", "[{\"flop\": {}}]", "there is no operation \"flop\": did you mean 'flip'?"},
      {"map", "[{\"pad_crop\": {\"padding\": \"mirror\"}}]", "map[0].pad_crop.padding"},
      {"map", "[{\"flip\": {\"probability\": \"often\"}}]", "map[0].flip.probability"},
      {"shard_for_worker", "{\"count\": 5, \"index\": 4, \"by\": \"record\"}", "shard_for_worker.by"}};
  hr_dataset* dataset = images();
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
    FAILS(HR_INVALID_ARGUMENT, refused[i][2], hr_dataset_add(dataset, refused[i][0], refused[i][1], NULL));
  CHECK(records_of(dataset) == 9);
  OK(hr_dataset_add(dataset, "map", "[{\"flip\": {\"masks\": [\"mask\"]}}]", NULL));
  hr_field field;
  FAILS(HR_INVALID_ARGUMENT, "'mask'", hr_dataset_field(dataset, 0, &field));
  hr_dataset_free(dataset);
}

/* Stages one after another, and the records that each leaves. */
static void test_stages(void) {
  static const struct {
    const char *stage, *options;
    uint64_t records;
  } stages[] = {{"take", "{\"count\": 80}", 80},
                {"skip", "{\"count\": 20}", 60},
                {"shard", "{\"count\": 3, \"index\": 1}", 20},
                {"repeat", "{\"times\": 5}", 100},
                {"without_shard", "{\"count\": 4, \"index\": 0}", 75},
                {"shard_for_worker", "{\"count\": 5, \"index\": 4, \"by\": \"element\"}", 15},
                {"shuffle", "{\"seed\": 3}", 15},
                {"shuffle_window", "{\"seed\": 3, \"size\": 8}", 15},
                {"cache", "{\"memory\": {}}", 15},
                {"batch", "{\"global_batch\": 6, \"drop_remainder\": true}", 15},
                {"prefetch", "{\"batches\": 3}", 15}};
  hr_dataset *dataset = numbers(100), *copy = NULL;
  OK(hr_dataset_copy(dataset, &copy));
  for (size_t i = 0; i < sizeof stages / sizeof *stages; ++i) {
    OK(hr_dataset_add(dataset, stages[i].stage, stages[i].options, NULL));
    CHECK(records_of(dataset) == stages[i].records);
  }
  const hr_dataset_info info = about(dataset);
  CHECK(info.steps_per_epoch == 2 && info.fingerprint != 0 && info.field_count == 1 && info.global_batch == 6);
  hr_devices* devices = cpus(2);
  SAYS("shuffle", hr_dataset_explain(dataset, devices, &text));
  SAYS("cache", hr_dataset_explain(dataset, NULL, &text));
  hr_devices_free(devices);
  hr_dataset_free(dataset);
  CHECK(records_of(copy) == 100);
  OK(hr_dataset_add(copy, "select", "{\"numbers\": [19, 0, 19]}", NULL));
  CHECK(records_of(copy) == 3);
  OK(hr_dataset_add(copy, "select", "{\"numbers\": [19]}", NULL));
  FAILS(HR_INVALID_ARGUMENT, "number 19, at place 0 of the list, is out of range: there are 3",
        hr_dataset_describe(copy, &(hr_dataset_info)HR_DATASET_INFO_INIT));
  hr_dataset_free(copy);
}

static void test_labels(void) {
  hr_dataset* dataset = images();
  OK(hr_dataset_add(dataset, "filter", "{\"labels\": [0, 2]}", NULL));
  const char* name = NULL;
  OK(hr_dataset_class(dataset, 1, &name));
  CHECK(strcmp(name, "b") == 0);
  const hr_dataset_info info = about(dataset);
  CHECK(info.records == 6 && info.steps_per_epoch == HR_UNKNOWN && info.class_count == 3);
  hr_dataset_free(dataset);
}

static void test_unbatch(void) {
  static const int32_t pairs[] = {1, 2, 3, 4, 5, 6};
  const hr_array array = {
      .field = {.name = "pair", .dtype = HR_I32, .rank = 1, .shape = {2}}, .data = pairs, .bytes = sizeof pairs};
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_arrays(&array, 1, 3, NULL, &dataset));
  OK(hr_dataset_add(dataset, "unbatch", NULL, NULL));
  CHECK(records_of(dataset) == 6);
  hr_dataset_free(dataset);
}

static hr_status make_word(void* user, uint64_t index, hr_record* record) {
  (void)user;
  static const unsigned char letters[] = "abcdef";
  return hr_record_put(record, 0, letters, (size_t)index + 1);
}

/* Stages that batch the words "abcd" and "abcde", and what the batch then has. */
static const struct {
  const char *stage, *options;
  int64_t columns; /* 0: the letters of all words stand one after another */
  const char* letters;
  const char* numbers; /* another field, and its first values */
  int64_t first, second;
} kLengths[] = {
    {"padded_batch", "{\"pad\": [{\"field\": \"word\", \"length\": 6, \"value\": 45}]}", 6, "abcd--abcde-",
     "word_length", 4, 5},
    {"ragged_batch", "{\"fields\": [{\"field\": \"word\", \"max_length\": 9}]}", 0, "abcdabcde", "word_offsets", 0,
     4},
    {"bucket_by_length",
     "{\"field\": \"word\", \"boundaries\": [2], \"batch_sizes\": [3, 2], \"drop_remainder\": true}", 5,
     "abcd\0abcde", "index", 3, 4},
};

static void test_words_of_any_length(void) {
  const hr_field word = {.name = "word", .dtype = HR_U8, .rank = 1, .shape = {HR_DYNAMIC}};
  hr_record_calls calls = HR_RECORD_CALLS_INIT;
  calls.fields = &word;
  calls.field_count = 1;
  calls.make = make_word;
  for (size_t i = 0; i < sizeof kLengths / sizeof *kLengths; ++i) {
    hr_dataset* dataset = NULL;
    OK(hr_dataset_from_calls(&calls, "{\"records\": 5}", &dataset));
    OK(hr_dataset_add(dataset, "enumerate", NULL, NULL));
    OK(hr_dataset_add(dataset, "skip", "{\"count\": 3}", NULL));
    OK(hr_dataset_add(dataset, kLengths[i].stage, kLengths[i].options, NULL));
    hr_batch* batch = first_batch(dataset);
    const hr_tensor letters = tensor_of(batch, "word");
    CHECK(info_of(batch).examples == 2);
    CHECK(kLengths[i].columns == 0 ? letters.rank == 1 : letters.shape[1] == kLengths[i].columns);
    CHECK(memcmp(letters.data, kLengths[i].letters,
                 kLengths[i].columns == 0 ? 9 : 2 * (size_t)kLengths[i].columns) == 0);
    CHECK(value_of(batch, kLengths[i].numbers, 0) == kLengths[i].first);
    CHECK(value_of(batch, kLengths[i].numbers, 1) == kLengths[i].second);
    hr_batch_free(batch);
  }
}

static void test_combinations(void) {
  hr_dataset *first = numbers(6), *other = numbers(4), *all = NULL;
  const hr_dataset* const parts[] = {first, other};
  static const struct {
    const char *how, *options;
    uint64_t min, max;
  } kinds[] = {{"concatenate", NULL, 10, 10},
               {"interleave", "{\"block\": 2}", 10, 10},
               {"mix", "{\"weights\": [1, 1]}", 8, 9},
               {"mix", NULL, 10, 10}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    OK(hr_dataset_combine(kinds[i].how, kinds[i].options, parts, 2, &all));
    CHECK(records_of(all) >= kinds[i].min && records_of(all) <= kinds[i].max);
    hr_dataset_free(all);
  }
  OK(hr_dataset_combine("zip", "{\"suffixes\": [\"_a\", \"_b\"], \"strict\": false}", parts, 2, &all));
  CHECK(records_of(all) == 4 && strcmp(field_at(all, 1).name, "value_b") == 0);
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

/* The caches of a plan: its copies share them, and loaders count them. */
static void test_caches(void) {
  static const char* const caches[] = {"{\"memory\": {}}", "{\"disk\": {\"folder\": \"cache-of-the-test\"}}",
                                       "{\"memory\": {\"budget_bytes\": 1000}}"};
  for (int i = 0; i < 3; ++i) {
    hr_dataset *dataset = images(), *copy = NULL;
    OK(hr_dataset_add(dataset, "map", "[{\"center_crop\": {\"size\": 8}}]", NULL));
    OK(hr_dataset_add(dataset, "cache", caches[i], NULL));
    OK(hr_dataset_add(dataset, "batch", NULL, NULL));
    OK(hr_dataset_copy(dataset, &copy));
    hr_dataset* const runs[] = {dataset, copy};
    for (int run = 0; run < 2; ++run) {
      hr_loader* loader = loader_of(runs[run], NULL);
      for (hr_batch* batch = next_of(loader); batch != NULL; batch = next_of(loader)) hr_batch_free(batch);
      char* json = NULL;
      OK(hr_loader_stats(loader, &json));
      if (i < 2) CHECK(number_in(json, "cache_records") == 9 && number_in(json, "cache_hits") >= 9 * run);
      if (i == 2) CHECK(number_in(json, "cache_refused") > 0 && number_in(json, "cache_bytes") <= 1000);
      CHECK(strstr(json, "\"cache_trouble\":\"\"") != NULL && number_in(json, "cache_bad") == 0);
      hr_string_free(json);
      hr_loader_free(loader);
    }
    hr_dataset_free(copy);
    hr_dataset_free(dataset);
  }
}

int main(void) {
  test_operations();
  test_layouts();
  test_refusals();
  test_stages();
  test_labels();
  test_unbatch();
  test_words_of_any_length();
  test_combinations();
  test_caches();
  return end_of_test();
}
