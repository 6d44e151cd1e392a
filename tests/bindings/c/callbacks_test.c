/* The program's own functions: sources, operations and filters, their errors and who releases their data. */
#include <stdatomic.h>

#include "headrace/tests/bindings/c/check.h"

static atomic_int released;

static void count_release(void* data) {
  (void)data;
  ++released;
}

static const hr_field kValue = {.name = "value", .dtype = HR_I64};

static hr_status make_square(void* user, uint64_t index, hr_record* record) {
  const int64_t factor = *(const int64_t*)user, value = factor * (int64_t)(index * index);
  if (index == 7) return hr_fail(HR_DATA_CORRUPT, "seven is not to be had", "leave it out");
  if (index == 8) return HR_IO;
  if (index == 9) return hr_record_put(record, 0, &value, 3);
  return hr_record_put(record, 0, &value, sizeof value);
}

static hr_source* squares(uint64_t records) {
  static int64_t factor = 2;
  hr_generator_options options = HR_GENERATOR_OPTIONS_INIT;
  options.name = "squares";
  options.fields = &kValue;
  options.field_count = 1;
  options.records = records;
  options.make = make_square;
  options.user.data = &factor;
  options.user.release = count_release;
  hr_source* source = NULL;
  OK(hr_source_generator(&options, &source));
  return source;
}

/* A loader whose first batch is the record `index` of the squares. */
static hr_loader* loader_at(uint64_t index) {
  hr_dataset* dataset = dataset_of(squares(10));
  add_number(dataset, "skip", "count", (int64_t)index);
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 1}"));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_dataset_free(dataset);
  return loader;
}

static void test_generator(void) {
  released = 0;
  hr_batch* batch = NULL;
  hr_loader* loader = loader_at(3);
  batch = next_of(loader);
  CHECK(value_of(batch, "value", 0) == 18);
  hr_loader_free(loader);
  CHECK(released == 0); /* the batch still has the plan */
  hr_batch_free(batch);
  CHECK(released == 1);
  loader = loader_at(7);
  FAILS(HR_DATA_CORRUPT, "seven is not to be had", hr_loader_next(loader, 0, &batch));
  CHECK(strcmp(hr_last_error()->hint, "leave it out") == 0);
  CHECK(strcmp(hr_last_error()->source, "squares") == 0 && hr_last_error()->record == 7);
  hr_loader_free(loader);
  loader = loader_at(8);
  FAILS(HR_IO, "make returned 5 (io)", hr_loader_next(loader, 0, &batch));
  hr_loader_free(loader);
  loader = loader_at(9);
  FAILS(HR_INVALID_ARGUMENT, "was given 3 bytes", hr_loader_next(loader, 0, &batch));
  hr_loader_free(loader);
  CHECK(released == 4);
}

static void test_refused_callbacks(void) {
  released = 0;
  hr_generator_options options = HR_GENERATOR_OPTIONS_INIT;
  options.user.release = count_release;
  hr_source* source = NULL;
  FAILS(HR_INVALID_ARGUMENT, "hr_source_generator: make is null", hr_source_generator(&options, &source));
  CHECK(released == 1);
  options.make = make_square;
  FAILS(HR_INVALID_ARGUMENT, "has 0 fields", hr_source_generator(&options, &source));
  CHECK(released == 2);
}

static hr_status pull_three(void* user, hr_record* record, bool* end) {
  int64_t* next = user;
  *end = *next == 3;
  if (*end) return HR_OK;
  void* room = NULL;
  const hr_status status = hr_record_allocate(record, 0, sizeof *next, &room);
  if (status == HR_OK) memcpy(room, next, sizeof *next);
  ++*next;
  return status;
}

static void test_pulled(void) {
  int64_t next = 0;
  hr_pull_options options = HR_PULL_OPTIONS_INIT;
  options.fields = &kValue;
  options.field_count = 1;
  options.next = pull_three;
  options.user.data = &next;
  hr_source* source = NULL;
  OK(hr_source_pulled(&options, &source));
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(info.records == 3 && next == 3);
  hr_source_free(source);
}

struct counter {
  uint64_t next;
  atomic_int* closed;
};

static atomic_int closed;

static hr_status open_counter(void* user, uint64_t first, void** stream) {
  (void)user;
  struct counter* counter = malloc(sizeof *counter);
  *counter = (struct counter){.next = first, .closed = &closed};
  *stream = counter;
  return HR_OK;
}

static hr_status count_on(void* stream, hr_record* record, bool* end) {
  struct counter* counter = stream;
  *end = counter->next == 10;
  const uint64_t value = counter->next++;
  return *end ? HR_OK : hr_record_put(record, 0, &value, sizeof value);
}

static void close_counter(void* stream) {
  ++*((struct counter*)stream)->closed;
  free(stream);
}

static void test_stream(void) {
  released = closed = 0;
  hr_stream_options options = HR_STREAM_OPTIONS_INIT;
  options.fields = &kValue;
  options.field_count = 1;
  options.open = open_counter;
  options.next = count_on;
  options.close = close_counter;
  options.user.release = count_release;
  hr_source* source = NULL;
  OK(hr_source_stream(&options, &source));
  hr_dataset* dataset = dataset_of(source);
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 4}"));
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(dataset, &info));
  CHECK(info.streamed && info.records == HR_UNKNOWN && info.steps_per_epoch == HR_UNKNOWN);
  hr_loader* loader = loader_of(dataset, NULL);
  int64_t seen = 0;
  for (hr_batch* batch = next_of(loader); batch != NULL; batch = next_of(loader)) {
    hr_batch_info about = HR_BATCH_INFO_INIT;
    OK(hr_batch_describe(batch, &about));
    CHECK(value_of(batch, "value", 0) == seen);
    seen += about.examples;
    hr_batch_free(batch);
  }
  CHECK(seen == 10);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  CHECK(closed == 1 && released == 1);
}

static hr_status add_noise(void* user, const void* in, size_t in_bytes, const int64_t* in_shape, size_t in_rank,
                           void* out, size_t out_bytes, hr_random* random) {
  (void)user, (void)in_shape;
  if (in_bytes != sizeof(int64_t) || in_rank != 0 || out_bytes != 2 * sizeof(float)) return HR_INTERNAL;
  int64_t value = 0;
  memcpy(&value, in, sizeof value);
  if (value == 5) return hr_fail(HR_INVALID_ARGUMENT, "no fives", NULL);
  const float made[2] = {(float)value + hr_random_uniform(random), (float)hr_random_below(random, 3)};
  memcpy(out, made, sizeof made);
  return HR_OK;
}

static void test_user_map(void) {
  released = 0;
  hr_dataset* dataset = dataset_of(numbers(6));
  hr_operations* chain = NULL;
  OK(hr_operations_create(&chain));
  hr_user_map_options options = HR_USER_MAP_OPTIONS_INIT;
  options.name = "noise";
  options.field = "value";
  options.output.dtype = HR_F32;
  options.output.rank = 1;
  options.output.shape[0] = 2;
  options.function = add_noise;
  options.user.release = count_release;
  OK(hr_user_map(chain, &options));
  OK(hr_dataset_map(dataset, chain));
  hr_operations_free(chain);
  OK(hr_dataset_add(dataset, "batch", NULL));
  hr_field field;
  OK(hr_dataset_field(dataset, 0, &field));
  CHECK(field.dtype == HR_F32 && field.rank == 1 && field.shape[0] == 2);
  hr_loader_options skip = HR_LOADER_OPTIONS_INIT;
  skip.on_error = HR_ON_ERROR_SKIP;
  skip.max_bad_share = 0.5;
  hr_loader* loader = loader_of(dataset, &skip);
  hr_batch* batch = next_of(loader);
  hr_batch_info about = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &about));
  CHECK(about.examples == 5 && about.bad_count == 1);
  hr_bad_record bad = HR_BAD_RECORD_INIT;
  OK(hr_batch_bad_record(batch, 0, &bad));
  CHECK(bad.record == 5 && strstr(bad.cause, "no fives") != NULL && strstr(bad.operation, "noise") != NULL);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor_at(batch, 0, &tensor));
  const float* rows = tensor.data;
  for (int i = 0; i < 5; ++i) CHECK(rows[2 * i] >= (float)i && rows[2 * i] < (float)(i + 1));
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  CHECK(released == 1);
}

static hr_status split_value(void* user, hr_sample* sample) {
  (void)user;
  const void* in = NULL;
  void* out = NULL;
  size_t bytes = 0, rank = 9;
  uint64_t record = 0, pass = 0;
  int64_t shape[HR_MAX_RANK], value = 0;
  hr_status status = hr_sample_input(sample, 0, &in, &bytes, shape, &rank);
  if (status == HR_OK) status = hr_sample_position(sample, &record, &pass);
  if (status == HR_OK) status = hr_sample_output(sample, 0, &out, &bytes);
  if (status != HR_OK) return status;
  memcpy(&value, in, sizeof value);
  if (rank != 0 || (uint64_t)value != record) return HR_INTERNAL;
  ((int32_t*)out)[0] = (int32_t)pass;
  ((int32_t*)out)[1] = (int32_t)(hr_random_bits(hr_sample_random(sample)) & 1);
  return value == 3 ? hr_sample_output(sample, 1, &out, &bytes) : HR_OK;
}

static void test_user_operation(void) {
  static const char* const inputs[] = {"value"};
  const hr_field output = {.name = "extra", .dtype = HR_I32, .rank = 1, .shape = {2}};
  hr_operations* chain = NULL;
  OK(hr_operations_create(&chain));
  hr_user_operation_options options = HR_USER_OPERATION_OPTIONS_INIT;
  options.name = "split";
  options.each_pass_anew = true;
  options.inputs = inputs;
  options.input_count = 1;
  options.outputs = &output;
  options.output_count = 1;
  options.function = split_value;
  OK(hr_user_operation(chain, &options));
  hr_dataset* dataset = dataset_of(numbers(4));
  OK(hr_dataset_map(dataset, chain));
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 3}"));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor(batch, "extra", &tensor));
  CHECK(tensor.rank == 2 && tensor.shape[0] == 3 && tensor.shape[1] == 2 && tensor.dtype == HR_I32);
  CHECK(tensor.bytes == 3 * 2 * sizeof(int32_t));
  hr_batch_free(batch);
  FAILS(HR_INVALID_ARGUMENT, "there is no output 1", hr_loader_next(loader, 0, &batch));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  hr_operations_free(chain);
}

static hr_status keep_large(void* user, const hr_example* example, bool* keep) {
  (void)user;
  int64_t value = 0, shape[HR_MAX_RANK];
  const void* bytes = NULL;
  size_t size = 0, rank = 9;
  hr_status status = hr_example_integer(example, "value", &value);
  if (status == HR_OK) status = hr_example_bytes(example, "value", &bytes, &size);
  if (status == HR_OK) status = hr_example_shape(example, "value", shape, &rank);
  *keep = value > 5 && size == sizeof value && rank == 0;
  return status;
}

static hr_status look_for_nothing(void* user, const hr_example* example, bool* keep) {
  (void)user, (void)keep;
  int64_t value = 0;
  return hr_example_integer(example, "nothing", &value);
}

static void test_filter(void) {
  released = 0;
  hr_dataset* dataset = dataset_of(numbers(10));
  hr_filter* filter = NULL;
  hr_filter_options options = HR_FILTER_OPTIONS_INIT;
  options.name = "large";
  options.keeps = keep_large;
  options.user.release = count_release;
  OK(hr_filter_create(&options, &filter));
  OK(hr_dataset_filter(dataset, filter));
  hr_filter_free(filter);
  CHECK(records_of(dataset) == 4);
  CHECK(released == 0);
  options.keeps = look_for_nothing;
  options.user.release = NULL;
  OK(hr_filter_create(&options, &filter));
  OK(hr_dataset_filter(dataset, filter));
  hr_filter_free(filter);
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  FAILS(HR_INVALID_ARGUMENT, "nothing", hr_dataset_describe(dataset, &info));
  hr_dataset_free(dataset);
  CHECK(released == 1);
}

/* A plan whose data, operation and filter are code goes through text and comes back as the same plan. */
static void test_plan_of_code(void) {
  hr_source* source = squares(6);
  hr_dataset *plan = NULL, *read = NULL;
  hr_operations* chain = NULL;
  hr_filter* filter = NULL;
  hr_filter_options keeps = HR_FILTER_OPTIONS_INIT;
  keeps.name = "large";
  keeps.keeps = keep_large;
  hr_user_map_options map = HR_USER_MAP_OPTIONS_INIT;
  map.name = "noise";
  map.field = "value";
  map.output.rank = 1;
  map.output.shape[0] = 2;
  map.function = add_noise;
  OK(hr_operations_create(&chain));
  OK(hr_user_map(chain, &map));
  OK(hr_filter_create(&keeps, &filter));
  OK(hr_dataset_from(source, &plan));
  OK(hr_dataset_filter(plan, filter));
  OK(hr_dataset_map(plan, chain));
  OK(hr_dataset_add(plan, "batch", NULL));
  const hr_named_source named = {.name = "the squares", .source = source};
  const hr_filter* const filters[] = {filter};
  hr_plan_options parts = HR_PLAN_OPTIONS_INIT;
  parts.sources = &named;
  parts.source_count = 1;
  parts.operations = chain;
  parts.filters = filters;
  parts.filter_count = 1;
  char *json = NULL, *again = NULL;
  FAILS(HR_INVALID_ARGUMENT, "", hr_dataset_to_json(plan, NULL, &json));
  OK(hr_dataset_to_json(plan, &parts, &json));
  CHECK(strstr(json, "the squares") != NULL && strstr(json, "noise") != NULL && strstr(json, "large") != NULL);
  OK(hr_dataset_from_json(json, &parts, &read));
  OK(hr_dataset_to_json(read, &parts, &again));
  CHECK(strcmp(json, again) == 0);
  hr_dataset_info before = HR_DATASET_INFO_INIT, after = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(plan, &before));
  OK(hr_dataset_describe(read, &after));
  CHECK(before.fingerprint == after.fingerprint && after.records == before.records);
  hr_dataset_free(read);
  parts.source_count = 0;
  FAILS(HR_INVALID_ARGUMENT, "the squares", hr_dataset_from_json(json, &parts, &read));
  FAILS(HR_INVALID_ARGUMENT, "", hr_dataset_from_json("{", &parts, &read));
  hr_string_free(json);
  hr_string_free(again);
  hr_dataset_free(plan);
  hr_filter_free(filter);
  hr_operations_free(chain);
  hr_source_free(source);
}

int main(void) {
  test_generator();
  test_refused_callbacks();
  test_pulled();
  test_stream();
  test_user_map();
  test_user_operation();
  test_filter();
  test_plan_of_code();
  return end_of_test();
}
