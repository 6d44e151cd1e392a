/* The program's own functions: records, operations and filters, their errors and who releases their data. */
#include "headrace/tests/bindings/c/check.h"

static const hr_field kValue = {.name = "value", .dtype = HR_I64};

/* Calls with one field, whose user's release is counted. */
static hr_record_calls calls_of(void* data) {
  hr_record_calls calls = HR_RECORD_CALLS_INIT;
  calls.fields = &kValue;
  calls.field_count = 1;
  calls.user = (hr_user){data, count_release};
  released = 0;
  return calls;
}

static hr_status make_square(void* user, uint64_t index, hr_record* record) {
  const int64_t factor = *(const int64_t*)user, value = factor * (int64_t)(index * index);
  if (index == 7) return hr_fail(HR_DATA_CORRUPT, "seven is not to be had", "leave it out");
  if (index == 8) return HR_IO;
  if (index == 9) return hr_record_put(record, 0, &value, 3);
  return hr_record_put(record, 0, &value, sizeof value);
}

static hr_dataset* squares(uint64_t records) {
  static int64_t factor = 2;
  hr_record_calls calls = calls_of(&factor);
  calls.make = make_square;
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_calls(&calls, with("{\"name\": \"squares\", \"records\": %d}", (int)records), &dataset));
  return dataset;
}

/* A loader whose first batch is the record `index` of the squares. */
static hr_loader* loader_at(int index) {
  hr_dataset* dataset = squares(10);
  OK(hr_dataset_add(dataset, "skip", with("{\"count\": %d}", index), NULL));
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 1}", NULL));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_dataset_free(dataset);
  return loader;
}

static void test_records_by_number(void) {
  hr_loader* loader = loader_at(3);
  hr_batch* batch = next_of(loader);
  CHECK(value_of(batch, "value", 0) == 18);
  hr_loader_free(loader);
  CHECK(released == 0); /* the batch still has the plan */
  hr_batch_free(batch);
  CHECK(released == 1);
  static const struct {
    int index;
    hr_status status;
    const char* words;
  } refused[] = {{7, HR_DATA_CORRUPT, "seven is not to be had"},
                 {8, HR_IO, "make returned 5 (io)"},
                 {9, HR_INVALID_ARGUMENT, "was given 3 bytes"}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    loader = loader_at(refused[i].index);
    FAILS(refused[i].status, refused[i].words, hr_loader_next(loader, 0, &batch));
    if (i == 0) {
      CHECK(strcmp(hr_last_error()->hint, "leave it out") == 0);
      CHECK(strcmp(hr_last_error()->source, "squares") == 0 && hr_last_error()->record == 7);
    }
    hr_loader_free(loader);
    CHECK(released == 1);
  }
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

static void test_pulled_records(void) {
  int64_t next = 0;
  hr_record_calls calls = calls_of(&next);
  calls.next = pull_three;
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_calls(&calls, NULL, &dataset));
  CHECK(records_of(dataset) == 3 && next == 3 && strcmp(about(dataset).name, "pulled") == 0);
  hr_dataset_free(dataset);
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

static void test_a_stream(void) {
  closed = 0;
  hr_record_calls calls = calls_of(NULL);
  calls.open = open_counter;
  calls.next = count_on;
  calls.close = close_counter;
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_calls(&calls, "{\"fingerprint\": 5, \"label_count\": 3}", &dataset));
  CHECK(about(dataset).label_count == 3 && !about(dataset).resident);
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 4}", NULL));
  const hr_dataset_info info = about(dataset);
  CHECK(info.streamed && info.records == HR_UNKNOWN && info.steps_per_epoch == HR_UNKNOWN);
  hr_loader* loader = loader_of(dataset, NULL);
  int64_t seen = 0;
  for (hr_batch* batch = next_of(loader); batch != NULL; batch = next_of(loader)) {
    CHECK(value_of(batch, "value", 0) == seen);
    seen += info_of(batch).examples;
    hr_batch_free(batch);
  }
  CHECK(seen == 10);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  CHECK(closed == 1 && released == 1);
}

/* Which functions there are says how records are made; each way has its own options. */
static void test_refused_calls(void) {
  static const struct {
    bool make, open, next, close, fields;
    const char *options, *words;
  } refused[] = {
      {false, false, false, false, true, NULL, "hr_dataset_from_calls: these functions together make no records"},
      {true, false, true, false, true, NULL, "these functions together make no records"},
      {true, false, false, true, true, NULL, "these functions together make no records"},
      {false, true, false, false, true, NULL, "these functions together make no records"},
      {true, false, false, false, false, NULL, "has 0 fields"},
      {true, false, false, false, true, "{\"memory_limit\": 9}", "by number: there is no option \"memory_limit\""},
      {false, false, true, false, true, "{\"records\": 9}", "pulled records: there is no option \"records\""},
      {false, true, true, false, true, "{\"fingerprint\": \"x\"}",
       "options of a stream at fingerprint: \"x\" where"}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    hr_record_calls calls = calls_of(NULL);
    calls.make = refused[i].make ? make_square : NULL;
    calls.open = refused[i].open ? open_counter : NULL;
    calls.next = refused[i].next ? count_on : NULL;
    calls.close = refused[i].close ? close_counter : NULL;
    calls.field_count = refused[i].fields ? 1 : 0;
    hr_dataset* dataset = NULL;
    FAILS(HR_INVALID_ARGUMENT, refused[i].words, hr_dataset_from_calls(&calls, refused[i].options, &dataset));
    CHECK(released == 1 && dataset == NULL);
  }
}

static hr_status add_noise(void* user, hr_sample* sample) {
  (void)user;
  const void* in = NULL;
  void* out = NULL;
  size_t in_bytes = 0, out_bytes = 0, rank = 9;
  int64_t value = 0;
  hr_status status = hr_sample_input(sample, "value", &in, &in_bytes, NULL, &rank);
  if (status == HR_OK) status = hr_sample_output(sample, "value", &out, &out_bytes);
  if (status != HR_OK) return status;
  if (in_bytes != sizeof value || rank != 0 || out_bytes != 2 * sizeof(float)) return HR_INTERNAL;
  memcpy(&value, in, sizeof value);
  if (value == 5) return hr_fail(HR_INVALID_ARGUMENT, "no fives", NULL);
  const float made[2] = {(float)value + hr_random_uniform(sample), (float)hr_random_below(sample, 3)};
  memcpy(out, made, sizeof made);
  return value == 4 ? hr_sample_position(sample, &(uint64_t){0}, &(uint64_t){0}) : HR_OK;
}

static const hr_field kPair = {.dtype = HR_F32, .rank = 1, .shape = {2}};
static const char kNoise[] = "{\"name\": \"noise\", \"field\": \"value\"}";

static hr_parts* parts_of(void) {
  hr_parts* parts = NULL;
  OK(hr_parts_create(&parts));
  released = 0;
  return parts;
}

/* An operation that replaces one field: C++'s user_map(). */
static void test_one_field(void) {
  hr_dataset* dataset = numbers(6);
  hr_parts* parts = parts_of();
  OK(hr_parts_add_operation(parts, kNoise, &kPair, 1, add_noise, (hr_user){NULL, count_release}));
  OK(hr_dataset_add(dataset, "map", "[{\"named\": \"noise\"}]", parts));
  hr_parts_free(parts);
  OK(hr_dataset_add(dataset, "batch", NULL, NULL));
  const hr_field field = field_at(dataset, 0);
  CHECK(field.dtype == HR_F32 && field.rank == 1 && field.shape[0] == 2 && strcmp(field.name, "value") == 0);
  SAYS("user_map('noise', version=1, field=value", hr_dataset_explain(dataset, NULL, &text));
  hr_loader* loader = loader_of(dataset, "{\"on_error\": \"skip\", \"max_bad_share\": 0.5}");
  hr_batch* batch = next_of(loader);
  CHECK(info_of(batch).examples == 4 && info_of(batch).bad_count == 2);
  static const char* const causes[] = {"hr_sample_position: only an operation with inputs", "no fives"};
  for (size_t i = 0; i < 2; ++i) {
    hr_bad_record bad = HR_BAD_RECORD_INIT;
    OK(hr_batch_bad_record(batch, i, &bad));
    CHECK(bad.record == 4 + i && strstr(bad.cause, causes[i]) != NULL && strstr(bad.operation, "noise") != NULL);
  }
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_tensor_at(batch, 0, &tensor));
  const float* rows = tensor.data;
  for (int i = 0; i < 4; ++i) CHECK(rows[2 * i] >= (float)i && rows[2 * i] < (float)(i + 1));
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  CHECK(released == 1);
}

static hr_status split_value(void* user, hr_sample* sample) {
  const char* const* other = user;
  const void* in = NULL;
  void* out = NULL;
  size_t bytes = 0, rank = 9;
  uint64_t record = 0, pass = 0;
  int64_t shape[HR_MAX_RANK], value = 0;
  hr_status status = hr_sample_input(sample, "value", &in, &bytes, shape, &rank);
  if (status == HR_OK) status = hr_sample_position(sample, &record, &pass);
  if (status == HR_OK) status = hr_sample_output(sample, "extra", &out, &bytes);
  if (status != HR_OK) return status;
  memcpy(&value, in, sizeof value);
  if (rank != 0 || (uint64_t)value != record) return HR_INTERNAL;
  ((int32_t*)out)[0] = (int32_t)pass;
  ((int32_t*)out)[1] = (int32_t)(hr_random_bits(sample) & 1);
  if (value == 3) return hr_sample_output(sample, *other, &out, &bytes);
  if (value == 4) return hr_sample_input(sample, *other, &in, &bytes, NULL, NULL);
  return value == 5 ? hr_sample_integer(sample, "value", &value) : HR_OK;
}

static void test_any_fields(void) {
  static const char* other = "label";
  const hr_field output = {.name = "extra", .dtype = HR_I32, .rank = 1, .shape = {2}};
  hr_parts* parts = parts_of();
  OK(hr_parts_add_operation(parts,
                            "{\"name\": \"split\", \"version\": 3, \"inputs\": [\"value\"], "
                            "\"each_pass_anew\": true}",
                            &output, 1, split_value, (hr_user){&other, NULL}));
  hr_dataset* dataset = numbers(6);
  OK(hr_dataset_add(dataset, "map", "[{\"named\": \"split\", \"version\": 3}]", parts));
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 3}", NULL));
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_tensor tensor = tensor_of(batch, "extra");
  CHECK(tensor.rank == 2 && tensor.shape[0] == 3 && tensor.shape[1] == 2 && tensor.dtype == HR_I32);
  CHECK(tensor.bytes == 3 * 2 * sizeof(int32_t));
  hr_batch_free(batch);
  hr_loader_free(loader);
  loader = loader_of(dataset, "{\"on_error\": \"skip\", \"max_bad_share\": 0.5}");
  hr_batch_free(next_of(loader));
  CHECK(next_of(loader) == NULL); /* nothing is left of the second batch */
  hr_loader_free(loader);
  static const char* const words[] = {"there is no field 'label'", "hr_sample_input: 'label' is no input",
                                      "hr_sample_integer: called in an operation"};
  for (int i = 0; i < 3; ++i) {
    hr_dataset* rest = NULL;
    OK(hr_dataset_copy(dataset, &rest));
    OK(hr_dataset_add(rest, "unbatch", NULL, NULL));
    OK(hr_dataset_add(rest, "skip", with("{\"count\": %d}", 3 + i), NULL));
    OK(hr_dataset_add(rest, "batch", "{\"global_batch\": 1}", NULL));
    loader = loader_of(rest, NULL);
    FAILS(HR_INVALID_ARGUMENT, words[i], hr_loader_next(loader, 0, &batch));
    hr_loader_free(loader);
    hr_dataset_free(rest);
  }
  hr_dataset_free(dataset);
  hr_parts_free(parts);
}

static hr_status keep_large(void* user, const hr_sample* sample, bool* keep) {
  (void)user;
  int64_t value = 0, shape[HR_MAX_RANK];
  const void* bytes = NULL;
  size_t size = 0, rank = 9;
  hr_status status = hr_sample_integer(sample, "value", &value);
  if (status == HR_OK) status = hr_sample_input(sample, "value", &bytes, &size, shape, &rank);
  *keep = value > 5 && size == sizeof value && rank == 0;
  return status;
}

static hr_status look_for_nothing(void* user, const hr_sample* sample, bool* keep) {
  (void)user, (void)keep;
  int64_t value = 0;
  return hr_sample_integer(sample, "nothing", &value);
}

static hr_status draw(void* user, const hr_sample* sample, bool* keep) {
  (void)user;
  hr_sample* mine = (hr_sample*)(uintptr_t)sample;
  *keep = hr_random_bits(mine) == 0 && hr_random_uniform(mine) == 0 && hr_random_below(mine, 3) == 0;
  return hr_sample_output(mine, "value", &(void*){NULL}, &(size_t){0});
}

static void test_filters(void) {
  hr_dataset* dataset = numbers(10);
  hr_parts* parts = parts_of();
  OK(hr_parts_add_filter(parts, "{\"name\": \"large\"}", keep_large, (hr_user){NULL, count_release}));
  OK(hr_parts_add_filter(parts, "{\"name\": \"lost\"}", look_for_nothing, (hr_user){NULL, NULL}));
  OK(hr_parts_add_filter(parts, "{\"name\": \"drawn\", \"processed\": true}", draw, (hr_user){NULL, NULL}));
  OK(hr_dataset_add(dataset, "filter", "{\"named\": \"large\"}", parts));
  CHECK(records_of(dataset) == 4 && released == 0);
  static const char* const refused[][2] = {{"lost", "nothing"}, {"drawn", "hr_sample_output: called in a filter"}};
  for (size_t i = 0; i < 2; ++i) {
    hr_dataset* copy = NULL;
    OK(hr_dataset_copy(dataset, &copy));
    OK(hr_dataset_add(copy, "filter", with("{\"named\": \"%s\"}", refused[i][0]), parts));
    FAILS(HR_INVALID_ARGUMENT, refused[i][1], hr_dataset_describe(copy, &(hr_dataset_info)HR_DATASET_INFO_INIT));
    hr_dataset_free(copy);
  }
  hr_parts_free(parts);
  CHECK(released == 0);
  hr_dataset_free(dataset);
  CHECK(released == 1);
}

static void test_refused_parts(void) {
  hr_parts* parts = parts_of();
  const hr_user counted = {NULL, count_release};
  static const char* const operations[][2] = {
      {NULL, "hr_parts_add_operation: it has no name"},
      {"{\"name\": \"x\", \"versoin\": 2}",
       "options of an operation: there is no option \"versoin\": did you mean 'version'?"},
      {"{\"name\": \"x\", \"field\": \"a\", \"inputs\": [\"b\"]}", "field stands in place of inputs"}};
  for (size_t i = 0; i < 3; ++i) {
    FAILS(HR_INVALID_ARGUMENT, operations[i][1],
          hr_parts_add_operation(parts, operations[i][0], &kPair, 1, add_noise, counted));
  }
  FAILS(HR_INVALID_ARGUMENT, "0 outputs for the field 'value'",
        hr_parts_add_operation(parts, kNoise, NULL, 0, add_noise, counted));
  FAILS(HR_INVALID_ARGUMENT, "function is null", hr_parts_add_operation(parts, kNoise, &kPair, 1, NULL, counted));
  FAILS(HR_INVALID_ARGUMENT, "it has no name", hr_parts_add_filter(parts, NULL, keep_large, counted));
  FAILS(HR_INVALID_ARGUMENT, "max_failures: -1",
        hr_parts_add_filter(parts, "{\"name\": \"x\", \"max_failures\": -1}", keep_large, counted));
  CHECK(released == 7);
  hr_dataset* dataset = numbers(6);
  FAILS(HR_INVALID_ARGUMENT, "the operation \"noise\" is code, and is not among the parts (hr_parts holds nothing",
        hr_dataset_add(dataset, "map", "[{\"named\": \"noise\"}]", parts));
  OK(hr_parts_add_operation(parts, kNoise, &kPair, 1, add_noise, counted));
  FAILS(HR_INVALID_ARGUMENT, "hr_parts holds \"noise\" version 1",
        hr_dataset_add(dataset, "map", "[{\"named\": \"noise\", \"version\": 2}]", parts));
  OK(hr_dataset_add(dataset, "take", "{\"count\": 3}", NULL));
  FAILS(HR_INVALID_ARGUMENT, "the dataset is more than a source", hr_parts_add_source(parts, "numbers", dataset));
  hr_dataset_free(dataset);
  hr_parts_free(parts);
}

/* A plan whose data, operation and filter are code goes through text and comes back as the same plan. */
static void test_plan_of_code(void) {
  hr_dataset *plan = squares(6), *read = NULL;
  hr_parts *parts = parts_of(), *fewer = parts_of();
  const hr_user none = {NULL, NULL};
  OK(hr_parts_add_source(parts, "the squares", plan));
  OK(hr_parts_add_operation(parts, kNoise, &kPair, 1, add_noise, none));
  OK(hr_parts_add_filter(parts, "{\"name\": \"large\"}", keep_large, none));
  OK(hr_parts_add_operation(fewer, kNoise, &kPair, 1, add_noise, none));
  OK(hr_parts_add_filter(fewer, "{\"name\": \"large\"}", keep_large, none));
  OK(hr_dataset_add(plan, "filter", "{\"named\": \"large\"}", parts));
  OK(hr_dataset_add(plan, "map", "[{\"named\": \"noise\"}]", parts));
  OK(hr_dataset_add(plan, "batch", NULL, NULL));
  char *json = NULL, *again = NULL;
  FAILS(HR_INVALID_ARGUMENT, "give it to to_json() and from_json() in hr_parts",
        hr_dataset_to_json(plan, NULL, &json));
  OK(hr_dataset_to_json(plan, parts, &json));
  CHECK(strstr(json, "the squares") != NULL && strstr(json, "noise") != NULL && strstr(json, "large") != NULL);
  OK(hr_dataset_from_json(json, NULL, parts, &read));
  OK(hr_dataset_to_json(read, parts, &again));
  CHECK(strcmp(json, again) == 0);
  CHECK(about(plan).fingerprint == about(read).fingerprint && records_of(plan) == records_of(read));
  hr_dataset_free(read);
  FAILS(HR_INVALID_ARGUMENT, "the squares", hr_dataset_from_json(json, NULL, fewer, &read));
  FAILS(HR_INVALID_ARGUMENT, "plan: is no JSON", hr_dataset_from_json("{", NULL, parts, &read));
  hr_string_free(json);
  hr_string_free(again);
  hr_dataset_free(plan);
  hr_parts_free(fewer);
  hr_parts_free(parts);
}

int main(void) {
  test_records_by_number();
  test_pulled_records();
  test_a_stream();
  test_refused_calls();
  test_one_field();
  test_any_fields();
  test_filters();
  test_refused_parts();
  test_plan_of_code();
  return end_of_test();
}
