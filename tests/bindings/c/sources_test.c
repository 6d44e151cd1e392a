/* Every source: files in every format, arrays, and plans as text. */
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/tests/bindings/c/check.h"

static const char* folder;

/* Below the folder of the test's data. */
static const char* at(const char* name) { return with("%s/%s", folder, name); }

/* A name and options, the records, and the recognised format. */
static const struct {
  const char *name, *options;
  uint64_t records;
  const char* format;
} kFiles[] = {
    {"idx", NULL, 8, "IDX files"},
    {"cifar", "{\"split\": \"test\"}", 1, "CIFAR binaries"},
    {"idx", "{\"as\": \"idx_folder\"}", 8, ""},
    {"cifar", "{\"as\": \"cifar_binary\"}", 5, ""},
    {"folder", "{\"as\": \"image_folder\"}", 8, ""},
    {"images.tar", "{\"as\": \"image_archive\", \"memory_limit\": 1000000}", 8, ""},
    {"shards", "{\"as\": \"web_dataset\", \"label_count\": 9}", 8, ""},
    {"numpy", "{\"as\": \"numpy_arrays\"}", 8, ""},
    {"list.csv", "{\"as\": \"csv_manifest\", \"path_column\": \"file\", \"label_column\": \"class\"}", 8, ""},
    {"records", "{\"as\": \"tf_records\", \"image_keys\": [\"pixels\"], \"label_keys\": [\"kind\"]}", 8, ""},
};

static void test_files(void) {
  for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; ++i) {
    hr_dataset* dataset = NULL;
    OK(hr_dataset_open(at(kFiles[i].name), kFiles[i].options, &dataset));
    const hr_dataset_info info = about(dataset);
    CHECK(info.records == kFiles[i].records && info.field_count == 2);
    CHECK(strcmp(info.format, kFiles[i].format) == 0 && strstr(info.name, kFiles[i].name) != NULL);
    const hr_field image = field_at(dataset, 0), label = field_at(dataset, 1);
    CHECK(strcmp(image.name, "image") == 0);
    CHECK(strcmp(label.name, "label") == 0 && label.dtype == HR_I64 && label.rank == 0);
    if (image.encoding == HR_IMAGE) {
      OK(hr_dataset_add(dataset, "decode", NULL, NULL));
      OK(hr_dataset_add(dataset, "map", "[{\"center_crop\": {\"size\": 8}}]", NULL));
    }
    OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 8}", NULL));
    hr_loader* loader = loader_of(dataset, NULL);
    hr_batch* batch = next_of(loader);
    CHECK(info_of(batch).examples == (int64_t)kFiles[i].records && info_of(batch).last_of_epoch);
    hr_batch_free(batch);
    hr_loader_free(loader);
    hr_dataset_free(dataset);
  }
}

static const char kNumbers[] =
    "{\"as\": \"csv_manifest\", \"path_column\": \"file\", \"label_column\": \"number\", \"label_type\": "
    "\"number\"}";

static void test_columns(void) {
  hr_dataset* dataset = NULL;
  OK(hr_dataset_open(at("list.csv"),
                     "{\"as\": \"csv_manifest\", \"path_column\": \"file\", \"label_column\": \"class\", "
                     "\"columns\": [\"number\"]}",
                     &dataset));
  hr_field field = field_at(dataset, 2);
  CHECK(strcmp(field.name, "number") == 0 && field.dtype == HR_F32);
  hr_dataset_free(dataset);
  OK(hr_dataset_open(at("list.csv"), kNumbers, &dataset));
  field = field_at(dataset, 1);
  CHECK(strcmp(field.name, "label") == 0 && field.dtype == HR_F32 && field.rank == 0);
  CHECK(strcmp(about(dataset).left_out, "left out of each record: class (integers)") == 0);
  CHECK(strstr(about(dataset).reading, "class (integers)") != NULL);
  hr_dataset_free(dataset);
}

static void test_several_paths(void) {
  static const struct {
    const char* options; /* the folder stands for %s */
    uint64_t records;
  } several[] = {
      {"{\"as\": \"idx_files\", \"images\": \"%s/idx/train-images-idx3-ubyte\", "
       "\"labels\": \"%s/idx/train-labels-idx1-ubyte\"}",
       8},
      {"{\"as\": \"web_dataset\", \"path\": [\"%s/shards/train-0.tar\", \"%s/shards/train-0.tar\"]}", 16}};
  for (size_t i = 0; i < 2; ++i) {
    hr_dataset* dataset = NULL;
    OK(hr_dataset_open(NULL, with(several[i].options, folder, folder), &dataset));
    CHECK(about(dataset).records == several[i].records && about(dataset).resident == (i == 0));
    hr_dataset_free(dataset);
  }
}

static void test_refusals(void) {
  static const struct {
    const char *name, *options;
    hr_status status;
    const char* words;
  } refused[] = {
      {"nowhere", NULL, HR_NOT_FOUND, "nowhere"},
      {"cifar", "{\"as\": \"cifar_binary\", \"label_count\": 10}", HR_INVALID_ARGUMENT,
       "plan at cifar_binary: there is no option \"label_count\" (it has path, split)"},
      {"cifar", "{\"as\": \"cifar\"}", HR_INVALID_ARGUMENT,
       "there is no source \"cifar\": did you mean 'cifar_binary'?"},
      {"cifar", "{\"as\": 3}", HR_INVALID_ARGUMENT, "plan at as: 3 where a text is needed"},
      {"idx", "{\"split\": \"tset\"}", HR_INVALID_ARGUMENT,
       "plan at open.split: \"tset\" is not among the choices (write train or test)"},
      {"idx", "{\"path\": \"idx\"}", HR_INVALID_ARGUMENT, "plan at path: the path is given twice"},
      {"idx", "[]", HR_INVALID_ARGUMENT, "a list where an object is needed"},
      {NULL, "{\"split\": \"test\"}", HR_INVALID_ARGUMENT, "plan at open: 'path' is missing"},
      {"list.csv", "{\"as\": \"csv_manifest\", \"path_column\": \"file\", \"label_column\": \"number\"}",
       HR_INVALID_ARGUMENT, "not whole"}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    hr_dataset* dataset = NULL;
    const char* path = refused[i].name != NULL ? at(refused[i].name) : NULL;
    FAILS(refused[i].status, refused[i].words, hr_dataset_open(path, refused[i].options, &dataset));
    CHECK(dataset == NULL);
  }
}

static void test_record_file(void) {
  SAYS("{\"records\":8,\"bytes\":",
       hr_convert(at("folder"), "packed.hrr", "{\"quality\": 80, \"split\": \"train\"}", NULL, &text));
  hr_dataset* dataset = NULL;
  OK(hr_dataset_open("packed.hrr", "{\"as\": \"record_file\"}", &dataset));
  const char* name = NULL;
  OK(hr_dataset_class(dataset, 1, &name));
  CHECK(strcmp(name, "dog") == 0);
  FAILS(HR_INVALID_ARGUMENT, "there is no class 2", hr_dataset_class(dataset, 2, &name));
  hr_dataset_free(dataset);
  FAILS(HR_DATA_CORRUPT, "damaged", hr_convert(at("damaged"), "bad.hrr", NULL, NULL, NULL));
  FAILS(HR_INVALID_ARGUMENT, "options of a conversion at split: \"tset\" is not among the choices",
        hr_convert(at("folder"), "bad.hrr", "{\"split\": \"tset\"}", NULL, NULL));
  SAYS("\"records\":7",
       hr_convert(at("damaged"), "most.hrr", "{\"on_error\": \"skip\", \"max_bad_share\": 0.5}", NULL, &text));
}

/* A plan written here runs wherever the data are. */
static void test_plan_text(void) {
  hr_dataset *plan = NULL, *read = NULL;
  OK(hr_dataset_open(at("folder"), NULL, &plan));
  OK(hr_dataset_add(plan, "decode", NULL, NULL));
  OK(hr_dataset_add(plan, "map", "[{\"center_crop\": {\"size\": 8}}]", NULL));
  OK(hr_dataset_add(plan, "shuffle", NULL, NULL));
  OK(hr_dataset_add(plan, "batch", NULL, NULL));
  char* json = NULL;
  OK(hr_dataset_to_json(plan, NULL, &json));
  OK(hr_dataset_from_json(json, NULL, NULL, &read));
  CHECK(about(plan).fingerprint == about(read).fingerprint && about(plan).global_batch == 32);
  hr_dataset_free(read);
  OK(hr_dataset_from_json(json, "{\"global_batch\": 5, \"base\": \"/nowhere\"}", NULL, &read));
  CHECK(about(read).global_batch == 5);
  hr_dataset_free(read);
  FAILS(HR_INVALID_ARGUMENT, "this plan may name none: allow_paths = false (name one of hr_parts",
        hr_dataset_from_json(json, "{\"allow_paths\": false}", NULL, &read));
  FAILS(HR_INVALID_ARGUMENT, "options of a plan: there is no option \"bace\": did you mean 'base'?",
        hr_dataset_from_json(json, "{\"bace\": \"/\"}", NULL, &read));
  hr_string_free(json);
  hr_dataset_free(plan);
  const char text[] = "{\"headrace_plan\": 2, \"source\": {\"open\": {\"path\": \"folder\"}}}";
  OK(hr_dataset_from_json(text, with("{\"base\": \"%s\"}", folder), NULL, &read));
  CHECK(records_of(read) == 8);
  hr_dataset_free(read);
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
  hr_dataset* dataset = NULL;
  OK(hr_dataset_open("pipe", "{\"as\": \"web_stream\", \"fingerprint\": 7}", &dataset));
  CHECK(about(dataset).streamed && records_of(dataset) == HR_UNKNOWN);
  OK(hr_dataset_add(dataset, "decode", NULL, NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"resize\": {\"size\": 8}}, {\"center_crop\": {\"size\": 8}}]", NULL));
  OK(hr_dataset_add(dataset, "batch", NULL, NULL));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  CHECK(info_of(batch).examples == 8);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_borrowed_arrays(void) {
  static int64_t values[4] = {5, 6, 7, 8};
  const hr_array array = {.field = {.name = "value", .dtype = HR_I64, .rank = 1, .shape = {2}},
                          .data = values,
                          .bytes = sizeof values,
                          .owner = {.data = NULL, .release = count_release}};
  hr_dataset* dataset = NULL;
  released = 0;
  OK(hr_dataset_from_arrays(&array, 1, 2, "{\"classes\": [\"one\", \"two\"]}", &dataset));
  const char* name = NULL;
  OK(hr_dataset_class(dataset, 1, &name));
  CHECK(strcmp(name, "two") == 0 && strcmp(about(dataset).name, "memory") == 0 && about(dataset).resident);
  CHECK(released == 0);
  hr_dataset_free(dataset);
  CHECK(released == 1);
  FAILS(HR_INVALID_ARGUMENT, "value", hr_dataset_from_arrays(&array, 1, 3, NULL, &dataset));
  FAILS(HR_INVALID_ARGUMENT, "options of arrays: there is no option \"records\"",
        hr_dataset_from_arrays(&array, 1, 2, "{\"records\": 2}", &dataset));
  FAILS(HR_INVALID_ARGUMENT, "dataset is null", hr_dataset_from_arrays(&array, 1, 2, NULL, NULL));
  CHECK(released == 4);
  hr_array several[] = {array, array, array};
  several[0].field.dtype = 77;
  FAILS(HR_INVALID_ARGUMENT, "dtype = 77", hr_dataset_from_arrays(several, 3, 2, NULL, &dataset));
  CHECK(released == 7);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  test_files();
  test_columns();
  test_several_paths();
  test_refusals();
  test_record_file();
  test_plan_text();
  test_web_stream();
  test_borrowed_arrays();
  return end_of_test();
}
