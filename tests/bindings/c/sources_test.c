/* Every source: files in every format, arrays, and records that functions make. */
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/tests/bindings/c/check.h"

static const char* folder;

/* Below the folder of the test's data; valid until the next call but three. */
static const char* at(const char* name) {
  static char paths[4][512];
  static int turn = 0;
  char* path = paths[turn++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void expect_source(const char* name, hr_open_options options, uint64_t records, const char* format) {
  hr_source* source = NULL;
  OK(hr_source_open(at(name), &options, &source));
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(info.records == records);
  CHECK(strcmp(info.format, format) == 0);
  CHECK(info.field_count == 2);
  hr_field image, label;
  OK(hr_source_field(source, 0, &image));
  OK(hr_source_field(source, 1, &label));
  CHECK(strcmp(image.name, "image") == 0);
  CHECK(strcmp(label.name, "label") == 0 && label.dtype == HR_I64 && label.rank == 0);
  hr_loader* loader = NULL;
  hr_dataset* dataset = dataset_of(source);
  if (image.encoding == HR_IMAGE) OK(hr_dataset_add(dataset, "decode", NULL));
  if (image.encoding == HR_IMAGE) OK(hr_dataset_add(dataset, "map", "[{\"center_crop\": {\"size\": 8}}]"));
  add_number(dataset, "batch", "global_batch", (int64_t)records);
  loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_batch_info about = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &about));
  CHECK(about.examples == (int64_t)records && about.last_of_epoch);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static hr_open_options as(int32_t format) {
  hr_open_options options = HR_OPEN_OPTIONS_INIT;
  options.format = format;
  return options;
}

static void test_files(void) {
  expect_source("idx", as(HR_FORMAT_AUTO), 8, "IDX files");
  expect_source("idx", as(HR_FORMAT_IDX), 8, "IDX files");
  expect_source("cifar", as(HR_FORMAT_CIFAR), 5, "CIFAR binaries");
  hr_open_options test_split = as(HR_FORMAT_CIFAR);
  test_split.split = HR_TEST;
  expect_source("cifar", test_split, 1, "CIFAR binaries");
  expect_source("folder", as(HR_FORMAT_IMAGE_FOLDER), 8, "images in folders");
  expect_source("images.tar", as(HR_FORMAT_IMAGE_ARCHIVE), 8, "images in an archive");
  expect_source("shards", as(HR_FORMAT_WEB_DATASET), 8, "WebDataset");
  expect_source("numpy", as(HR_FORMAT_NUMPY), 8, "NumPy arrays");
  hr_open_options csv = as(HR_FORMAT_CSV);
  csv.path_column = "file";
  csv.label_column = "class";
  expect_source("list.csv", csv, 8, "a CSV list");
  static const char* const columns[] = {"number"};
  csv.columns = columns;
  csv.column_count = 1;
  hr_source* source = NULL;
  hr_field field;
  OK(hr_source_open(at("list.csv"), &csv, &source));
  OK(hr_source_field(source, 2, &field));
  CHECK(strcmp(field.name, "number") == 0 && field.dtype == HR_F32);
  hr_source_free(source);
  csv.column_count = 0;
  csv.label_column = "number";
  FAILS(HR_INVALID_ARGUMENT, "not whole", hr_source_open(at("list.csv"), &csv, &source));
  csv.label_type = HR_LABEL_NUMBER;
  OK(hr_source_open(at("list.csv"), &csv, &source));
  OK(hr_source_field(source, 1, &field));
  CHECK(strcmp(field.name, "label") == 0 && field.dtype == HR_F32 && field.rank == 0);
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(strcmp(info.left_out, "left out of each record: class (integers)") == 0);
  hr_source_free(source);
  static const char* const image_keys[] = {"pixels"};
  static const char* const label_keys[] = {"kind"};
  hr_open_options records = as(HR_FORMAT_TF_RECORDS);
  records.image_keys = image_keys;
  records.image_key_count = 1;
  records.label_keys = label_keys;
  records.label_key_count = 1;
  expect_source("records", records, 8, "TFRecords");
}

static void test_several_paths(void) {
  const char* const pair[] = {at("idx/train-images-idx3-ubyte"), at("idx/train-labels-idx1-ubyte")};
  hr_open_options options = as(HR_FORMAT_IDX_FILES);
  hr_source* source = NULL;
  OK(hr_source_open_all(pair, 2, &options, &source));
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(info.records == 8 && info.resident);
  hr_source_free(source);
  FAILS(HR_INVALID_ARGUMENT, "1 paths for a pair of IDX files", hr_source_open_all(pair, 1, &options, &source));
  const char* const shards[] = {at("shards/train-0.tar"), at("shards/train-0.tar")};
  options = as(HR_FORMAT_WEB_DATASET);
  OK(hr_source_open_all(shards, 2, &options, &source));
  OK(hr_source_describe(source, &info));
  CHECK(info.records == 16);
  hr_source_free(source);
}

static void test_refusals(void) {
  hr_source* source = NULL;
  FAILS(HR_NOT_FOUND, "nowhere", hr_source_open(at("nowhere"), NULL, &source));
  CHECK(strcmp(hr_last_error()->kind, "DataError") == 0 || strcmp(hr_last_error()->kind, "ConfigError") == 0);
  CHECK(source == NULL);
  hr_open_options options = as(HR_FORMAT_CIFAR);
  options.label_count = 10;
  FAILS(HR_INVALID_ARGUMENT, "CIFAR binaries has no use for label_count",
        hr_source_open(at("cifar"), &options, &source));
  options = as(99);
  FAILS(HR_INVALID_ARGUMENT, "format = 99", hr_source_open(at("cifar"), &options, &source));
  options = as(HR_FORMAT_IDX);
  options.split = 2;
  FAILS(HR_INVALID_ARGUMENT, "split = 2 is none of its values", hr_source_open(at("idx"), &options, &source));
}

static void test_record_file(void) {
  hr_convert_options options = HR_CONVERT_OPTIONS_INIT;
  options.quality = 80;
  hr_convert_result result = HR_CONVERT_RESULT_INIT;
  OK(hr_convert(at("folder"), "packed.hrr", &options, &result));
  CHECK(result.records == 8 && result.bytes > 0);
  hr_open_options open = HR_OPEN_OPTIONS_INIT;
  open.format = HR_FORMAT_RECORD_FILE;
  hr_source* source = NULL;
  OK(hr_source_open("packed.hrr", &open, &source));
  const char* name = NULL;
  OK(hr_source_class(source, 1, &name));
  CHECK(strcmp(name, "dog") == 0);
  FAILS(HR_INVALID_ARGUMENT, "there is no class 2", hr_source_class(source, 2, &name));
  hr_source_free(source);
  FAILS(HR_DATA_CORRUPT, "damaged", hr_convert(at("damaged"), "bad.hrr", NULL, NULL));
  options.skip_bad = true;
  options.max_bad_share = 0.5;
  OK(hr_convert(at("damaged"), "most.hrr", &options, &result));
  CHECK(result.records == 7 && result.bad_records == 1);
}

/* A plan written here runs wherever the data are. */
static void test_plan_text(void) {
  hr_source* source = NULL;
  OK(hr_source_open(at("folder"), NULL, &source));
  hr_dataset *plan = dataset_of(source), *read = NULL;
  OK(hr_dataset_add(plan, "decode", NULL));
  OK(hr_dataset_add(plan, "map", "[{\"center_crop\": {\"size\": 8}}]"));
  OK(hr_dataset_add(plan, "shuffle", NULL));
  OK(hr_dataset_add(plan, "batch", NULL));
  char* json = NULL;
  OK(hr_dataset_to_json(plan, NULL, &json));
  OK(hr_dataset_from_json(json, NULL, &read));
  hr_dataset_info before = HR_DATASET_INFO_INIT, after = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(plan, &before));
  OK(hr_dataset_describe(read, &after));
  CHECK(before.fingerprint == after.fingerprint);
  hr_dataset_free(read);
  hr_plan_options options = HR_PLAN_OPTIONS_INIT;
  options.refuse_paths = true;
  FAILS(HR_INVALID_ARGUMENT, "path", hr_dataset_from_json(json, &options, &read));
  hr_string_free(json);
  hr_dataset_free(plan);
}

static void test_web_stream(void) {
  remove("pipe");
  CHECK(mkfifo("pipe", 0600) == 0);
  const pid_t child = fork();
  if (child == 0) {
    FILE* from = fopen(at("shards/train-0.tar"), "rb");
    FILE* to = fopen("pipe", "wb");
    for (int c = getc(from); c != EOF; c = getc(from)) putc(c, to);
    fclose(to);
    _exit(0);
  }
  hr_open_options options = as(HR_FORMAT_WEB_STREAM);
  options.fingerprint = 7;
  hr_source* source = NULL;
  OK(hr_source_open("pipe", &options, &source));
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(info.streamed && info.records == HR_UNKNOWN);
  hr_dataset* dataset = dataset_of(source);
  OK(hr_dataset_add(dataset, "decode", NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"resize\": {\"size\": 8}}, {\"center_crop\": {\"size\": 8}}]"));
  OK(hr_dataset_add(dataset, "batch", NULL));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_batch_info about = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &about));
  CHECK(about.examples == 8);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static int released = 0;

static void count_release(void* data) {
  (void)data;
  ++released;
}

static void test_borrowed_arrays(void) {
  static int64_t values[4] = {5, 6, 7, 8};
  const hr_array array = {.field = {.name = "value", .dtype = HR_I64, .rank = 1, .shape = {2}},
                          .data = values,
                          .bytes = sizeof values,
                          .owner = {.data = NULL, .release = count_release}};
  static const char* const classes[] = {"one", "two"};
  hr_memory_options options = HR_MEMORY_OPTIONS_INIT;
  options.records = 2;
  options.arrays = &array;
  options.array_count = 1;
  options.classes = classes;
  options.class_count = 2;
  hr_source* source = NULL;
  released = 0;
  OK(hr_source_in_memory(&options, &source));
  const char* name = NULL;
  OK(hr_source_class(source, 1, &name));
  CHECK(strcmp(name, "two") == 0);
  CHECK(released == 0);
  hr_source_free(source);
  CHECK(released == 1);
  options.records = 3;
  FAILS(HR_INVALID_ARGUMENT, "value", hr_source_in_memory(&options, &source));
  CHECK(released == 2);
  hr_array several[] = {array, array, array};
  several[0].field.dtype = 77;
  options.arrays = several;
  options.array_count = 3;
  FAILS(HR_INVALID_ARGUMENT, "dtype = 77", hr_source_in_memory(&options, &source));
  CHECK(released == 5);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  test_files();
  test_several_paths();
  test_refusals();
  test_record_file();
  test_plan_text();
  test_web_stream();
  test_borrowed_arrays();
  return end_of_test();
}
