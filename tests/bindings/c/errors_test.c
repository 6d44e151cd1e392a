/* Wrong arguments are errors that say which; structs of other versions are read as far as they are known. */
#include <pthread.h>

#include "headrace/tests/bindings/c/check.h"

#define NULL_FAILS(call) FAILS(HR_INVALID_ARGUMENT, " is null", call)

static hr_status make(void* user, uint64_t index, hr_record* record) {
  (void)user, (void)index, (void)record;
  return HR_OK;
}

/* Each function that can fail, with each of its pointers null in turn; those that may be null are left out. */
static void test_null_arguments(void) {
  hr_devices* devices = cpus(1);
  hr_dataset* dataset = numbers_in_batches(4, 2);
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_parts* parts = NULL;
  hr_tally* tally = NULL;
  OK(hr_tally_create(&tally));
  OK(hr_parts_create(&parts));
  char* text = NULL;
  const char* name = NULL;
  const void* data = NULL;
  int32_t count = 0;
  size_t size = 0;
  const hr_user none = {NULL, NULL};
  hr_record_calls calls = HR_RECORD_CALLS_INIT;
  calls.make = make;

  NULL_FAILS(hr_devices_open(NULL, &devices));
  NULL_FAILS(hr_devices_open("cpu", NULL));
  NULL_FAILS(hr_devices_count(NULL, &count));
  NULL_FAILS(hr_devices_count(devices, NULL));
  NULL_FAILS(hr_devices_name(NULL, 0, &name));
  NULL_FAILS(hr_devices_name(devices, 0, NULL));
  NULL_FAILS(hr_dataset_open(NULL, NULL, &dataset));
  NULL_FAILS(hr_dataset_open("x", NULL, NULL));
  NULL_FAILS(hr_dataset_from_arrays(NULL, 1, 1, NULL, &dataset));
  NULL_FAILS(hr_dataset_from_calls(NULL, NULL, &dataset));
  NULL_FAILS(hr_dataset_from_calls(&calls, NULL, NULL));
  NULL_FAILS(hr_dataset_from_json(NULL, NULL, NULL, &dataset));
  NULL_FAILS(hr_dataset_from_json("{}", NULL, NULL, NULL));
  NULL_FAILS(hr_record_put(NULL, 0, "", 1));
  NULL_FAILS(hr_record_allocate(NULL, 0, 1, (void**)&text));
  NULL_FAILS(hr_dataset_to_json(NULL, NULL, &text));
  NULL_FAILS(hr_dataset_to_json(dataset, NULL, NULL));
  NULL_FAILS(hr_dataset_combine(NULL, NULL, NULL, 0, &dataset));
  NULL_FAILS(hr_dataset_combine("zip", NULL, NULL, 1, &dataset));
  NULL_FAILS(hr_dataset_copy(NULL, &dataset));
  NULL_FAILS(hr_dataset_add(NULL, "decode", NULL, NULL));
  NULL_FAILS(hr_dataset_add(dataset, NULL, NULL, NULL));
  NULL_FAILS(hr_dataset_describe(NULL, &(hr_dataset_info)HR_DATASET_INFO_INIT));
  NULL_FAILS(hr_dataset_describe(dataset, NULL));
  NULL_FAILS(hr_dataset_field(dataset, 0, NULL));
  NULL_FAILS(hr_dataset_class(dataset, 0, NULL));
  NULL_FAILS(hr_dataset_explain(dataset, NULL, NULL));
  NULL_FAILS(hr_dataset_inspect(NULL, NULL, &text));
  NULL_FAILS(hr_dataset_inspect(dataset, NULL, NULL));
  NULL_FAILS(hr_parts_create(NULL));
  NULL_FAILS(hr_parts_add_operation(NULL, NULL, NULL, 0, NULL, none));
  NULL_FAILS(hr_parts_add_operation(parts, NULL, NULL, 1, NULL, none));
  NULL_FAILS(hr_parts_add_filter(NULL, NULL, NULL, none));
  NULL_FAILS(hr_parts_add_filter(parts, NULL, NULL, none));
  NULL_FAILS(hr_parts_add_source(NULL, "x", dataset));
  NULL_FAILS(hr_parts_add_source(parts, NULL, dataset));
  NULL_FAILS(hr_parts_add_source(parts, "x", NULL));
  NULL_FAILS(hr_sample_input(NULL, "x", &data, &size, NULL, NULL));
  NULL_FAILS(hr_sample_integer(NULL, "x", &(int64_t){0}));
  NULL_FAILS(hr_sample_output(NULL, "x", (void**)&text, &size));
  NULL_FAILS(hr_sample_position(NULL, &(uint64_t){0}, &(uint64_t){0}));
  CHECK(hr_random_bits(NULL) == 0 && hr_random_below(NULL, 0) == 0 && hr_random_uniform(NULL) == 0);
  NULL_FAILS(hr_tally_create(NULL));
  NULL_FAILS(hr_tally_read(NULL, &text));
  NULL_FAILS(hr_tally_read(tally, NULL));
  NULL_FAILS(hr_convert(NULL, "to", NULL, NULL, NULL));
  NULL_FAILS(hr_convert("from", NULL, NULL, NULL, NULL));
  NULL_FAILS(hr_loader_open(NULL, devices, NULL, NULL, &loader));
  NULL_FAILS(hr_loader_open(dataset, NULL, NULL, NULL, &loader));
  NULL_FAILS(hr_loader_open(dataset, devices, NULL, NULL, NULL));
  NULL_FAILS(hr_loader_next(NULL, 0, &batch));
  NULL_FAILS(hr_loader_next(loader, 0, NULL));
  NULL_FAILS(hr_loader_stop(NULL));
  NULL_FAILS(hr_loader_describe(loader, NULL));
  NULL_FAILS(hr_loader_state(loader, NULL));
  NULL_FAILS(hr_loader_trace(NULL, &text));
  NULL_FAILS(hr_loader_stats(loader, NULL));
  NULL_FAILS(hr_loader_digest(NULL, 0, &text));
  NULL_FAILS(hr_loader_digest(loader, 0, NULL));
  NULL_FAILS(hr_batch_describe(NULL, &(hr_batch_info)HR_BATCH_INFO_INIT));
  NULL_FAILS(hr_batch_tensor(batch, NULL, &(hr_tensor)HR_TENSOR_INIT));
  NULL_FAILS(hr_batch_tensor_at(batch, 0, NULL));
  NULL_FAILS(hr_batch_records(batch, NULL, &size));
  NULL_FAILS(hr_batch_bad_record(NULL, 0, &(hr_bad_record)HR_BAD_RECORD_INIT));
  NULL_FAILS(hr_batch_wait(NULL));
  NULL_FAILS(hr_batch_is_ready(batch, NULL));
  NULL_FAILS(hr_batch_use_in(NULL, 0));
  NULL_FAILS(hr_batch_dlpack(batch, "value", NULL, NULL));
  NULL_FAILS(hr_batch_legacy_dlpack(NULL, "value", NULL, (struct DLManagedTensor**)&text));

  hr_tally_free(tally);
  hr_parts_free(parts);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  hr_devices_free(devices);
  hr_tally_free(NULL);
  hr_parts_free(NULL);
  hr_batch_free(NULL);
  hr_loader_free(NULL);
  hr_dataset_free(NULL);
  hr_devices_free(NULL);
  hr_string_free(NULL);
}

static void test_sizes(void) {
  hr_dataset* dataset = numbers_in_batches(8, 4);
  hr_loader* loader = NULL;
  hr_loader_calls none = {0};
  FAILS(HR_INVALID_ARGUMENT, "hr_loader_calls.size is 0 (initialise it with HR_LOADER_CALLS_INIT)",
        open_on_one(dataset, NULL, &none, &loader));

  struct {
    hr_loader_calls known;
    uint64_t later;
  } newer = {HR_LOADER_CALLS_INIT, 0};
  newer.known.size = sizeof newer;
  OK(open_on_one(dataset, NULL, &newer.known, &loader));
  hr_loader_free(loader);
  newer.later = 1;
  FAILS(HR_INVALID_ARGUMENT, "members that this version of Headrace does not know",
        open_on_one(dataset, NULL, &newer.known, &loader));

  /* Of before all but the first member were added. */
  struct {
    size_t size;
    hr_status (*while_waiting)(void* user);
  } older = {sizeof older, NULL};
  OK(open_on_one(dataset, NULL, (const hr_loader_calls*)&older, &loader));
  hr_loader_free(loader);
  struct {
    size_t size;
    uint64_t records;
    uint64_t untouched;
  } asked = {2 * sizeof(size_t), 0, 77};
  OK(hr_dataset_describe(dataset, (hr_dataset_info*)&asked));
  CHECK(asked.records == 8 && asked.untouched == 77);
  struct {
    hr_dataset_info known;
    uint64_t later;
  } answer = {HR_DATASET_INFO_INIT, 5};
  answer.known.size = sizeof answer;
  OK(hr_dataset_describe(dataset, &answer.known));
  CHECK(answer.known.steps_per_epoch == 2 && answer.later == 0);
  hr_dataset_free(dataset);
}

static void* fail_elsewhere(void* said) {
  *(bool*)said = hr_last_error()->code == HR_OK && strcmp(hr_last_error()->kind, "") == 0;
  hr_devices* devices = NULL;
  if (hr_devices_open("tpu", &devices) == HR_OK) *(bool*)said = false;
  return NULL;
}

static void test_errors_are_of_their_thread(void) {
  hr_devices* devices = NULL;
  FAILS(HR_INVALID_ARGUMENT, "cpu:0", hr_devices_open("cpu:0", &devices));
  CHECK(strcmp(hr_last_error()->kind, "ConfigError") == 0);
  bool said = false;
  pthread_t other;
  CHECK(pthread_create(&other, NULL, fail_elsewhere, &said) == 0);
  pthread_join(other, NULL);
  CHECK(said);
  CHECK(strstr(hr_last_error()->what, "cpu:0") != NULL);
  CHECK(hr_last_error()->record == HR_UNKNOWN && strcmp(hr_last_error()->source, "") == 0);
}

static void test_names(void) {
  CHECK(hr_abi_version() == HR_ABI_VERSION);
  CHECK(strchr(hr_version(), '.') != NULL);
  CHECK(strcmp(hr_status_name(HR_OK), "ok") == 0);
  CHECK(strcmp(hr_status_name(HR_INVALID_ARGUMENT), "invalid_argument") == 0);
  CHECK(strcmp(hr_status_name(HR_INTERNAL), "internal") == 0);
  CHECK(strcmp(hr_status_name(-3), "unknown") == 0);
}

int main(void) {
  test_null_arguments();
  test_sizes();
  test_errors_are_of_their_thread();
  test_names();
  return end_of_test();
}
