/* Wrong arguments are errors that say which; structs of other versions are read as far as they are known. */
#include <pthread.h>

#include "headrace/tests/bindings/c/check.h"

#define NULL_FAILS(call) FAILS(HR_INVALID_ARGUMENT, " is null", call)

/* Each function that can fail, with each of its pointers null in turn; those that may be null are left out. */
static void test_null_arguments(void) {
  hr_devices* devices = cpus(1);
  hr_source* source = numbers(4);
  hr_dataset* dataset = numbers_in_batches(4, 2);
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  hr_operations* chain = NULL;
  hr_cache* cache = NULL;
  hr_digest* digest = NULL;
  hr_filter* filter = NULL;
  hr_tally* tally = NULL;
  hr_inspection* inspection = NULL;
  OK(hr_tally_create(&tally));
  OK(hr_source_inspect(source, NULL, &inspection));
  OK(hr_operations_create(&chain));
  OK(hr_cache_memory(0, &cache));
  OK(hr_digest_create(loader, &digest));
  char* text = NULL;
  const char* name = NULL;
  const void* data = NULL;
  int32_t count = 0;
  size_t size = 0;
  bool flag = false;
  hr_field field;
  hr_generator_options generator = HR_GENERATOR_OPTIONS_INIT;
  hr_user_map_options map = HR_USER_MAP_OPTIONS_INIT;

  NULL_FAILS(hr_devices_open(NULL, &devices));
  NULL_FAILS(hr_devices_open("cpu", NULL));
  NULL_FAILS(hr_devices_count(NULL, &count));
  NULL_FAILS(hr_devices_count(devices, NULL));
  NULL_FAILS(hr_devices_name(NULL, 0, &name));
  NULL_FAILS(hr_devices_name(devices, 0, NULL));
  NULL_FAILS(hr_source_open(NULL, NULL, &source));
  NULL_FAILS(hr_source_open("x", NULL, NULL));
  NULL_FAILS(hr_source_open_all(NULL, 1, NULL, &source));
  NULL_FAILS(hr_source_in_memory(NULL, &source));
  NULL_FAILS(hr_source_generator(NULL, &source));
  NULL_FAILS(hr_source_generator(&generator, NULL));
  NULL_FAILS(hr_source_pulled(NULL, &source));
  NULL_FAILS(hr_source_stream(NULL, &source));
  NULL_FAILS(hr_record_put(NULL, 0, "", 1));
  NULL_FAILS(hr_record_allocate(NULL, 0, 1, (void**)&text));
  NULL_FAILS(hr_source_describe(NULL, &(hr_source_info)HR_SOURCE_INFO_INIT));
  NULL_FAILS(hr_source_describe(source, NULL));
  NULL_FAILS(hr_source_field(NULL, 0, &field));
  NULL_FAILS(hr_source_field(source, 0, NULL));
  NULL_FAILS(hr_source_class(NULL, 0, &name));
  NULL_FAILS(hr_convert(NULL, "to", NULL, NULL));
  NULL_FAILS(hr_convert("from", NULL, NULL, NULL));
  NULL_FAILS(hr_tally_create(NULL));
  NULL_FAILS(hr_tally_read(NULL, &(hr_tally_count)HR_TALLY_COUNT_INIT));
  NULL_FAILS(hr_tally_read(tally, NULL));
  NULL_FAILS(hr_tally_first(NULL, &(hr_bad_record)HR_BAD_RECORD_INIT));
  NULL_FAILS(hr_source_inspect(NULL, NULL, &inspection));
  NULL_FAILS(hr_source_inspect(source, NULL, NULL));
  NULL_FAILS(hr_inspection_describe(NULL, &(hr_inspection_info)HR_INSPECTION_INFO_INIT));
  NULL_FAILS(hr_inspection_describe(inspection, NULL));
  NULL_FAILS(hr_inspection_label(NULL, 0, &(int64_t){0}, &(uint64_t){0}));
  NULL_FAILS(hr_inspection_bad_record(NULL, 0, &(hr_bad_record)HR_BAD_RECORD_INIT));
  NULL_FAILS(hr_inspection_warned_record(NULL, 0, &(hr_bad_record)HR_BAD_RECORD_INIT));
  NULL_FAILS(hr_operations_create(NULL));
  NULL_FAILS(hr_operations_append(NULL, chain));
  NULL_FAILS(hr_operations_append(chain, NULL));
  NULL_FAILS(hr_operations_describe(chain, NULL));
  NULL_FAILS(hr_operations_describe(NULL, &text));
  NULL_FAILS(hr_operations_add(NULL, "flip", NULL));
  NULL_FAILS(hr_operations_add(chain, NULL, NULL));
  NULL_FAILS(hr_user_map(chain, NULL));
  NULL_FAILS(hr_user_map(chain, &map));
  NULL_FAILS(hr_user_operation(chain, NULL));
  NULL_FAILS(hr_sample_input(NULL, 0, &data, &size, NULL, NULL));
  NULL_FAILS(hr_sample_output(NULL, 0, (void**)&text, &size));
  NULL_FAILS(hr_sample_position(NULL, &(uint64_t){0}, &(uint64_t){0}));
  CHECK(hr_sample_random(NULL) == NULL && hr_random_bits(NULL) == 0 && hr_random_below(NULL, 0) == 0);
  CHECK(hr_random_uniform(NULL) == 0);
  NULL_FAILS(hr_cache_memory(0, NULL));
  NULL_FAILS(hr_cache_disk(NULL, 0, 0, &cache));
  NULL_FAILS(hr_cache_read_stats(cache, NULL));
  NULL_FAILS(hr_cache_trouble(NULL, &text));
  NULL_FAILS(hr_dataset_from(NULL, &dataset));
  NULL_FAILS(hr_dataset_from(source, NULL));
  NULL_FAILS(hr_dataset_copy(NULL, &dataset));
  NULL_FAILS(hr_dataset_add(NULL, "decode", NULL));
  NULL_FAILS(hr_dataset_add(dataset, NULL, NULL));
  NULL_FAILS(hr_dataset_map(dataset, NULL));
  NULL_FAILS(hr_dataset_cache(dataset, NULL));
  NULL_FAILS(hr_filter_create(NULL, &filter));
  NULL_FAILS(hr_filter_create(&(hr_filter_options)HR_FILTER_OPTIONS_INIT, &filter));
  NULL_FAILS(hr_dataset_filter(dataset, NULL));
  NULL_FAILS(hr_dataset_to_json(NULL, NULL, &text));
  NULL_FAILS(hr_dataset_to_json(dataset, NULL, NULL));
  NULL_FAILS(hr_dataset_from_json(NULL, NULL, &dataset));
  NULL_FAILS(hr_example_bytes(NULL, "label", &data, &size));
  NULL_FAILS(hr_example_shape(NULL, "label", &(int64_t){0}, &size));
  NULL_FAILS(hr_example_integer(NULL, "label", &(int64_t){0}));
  NULL_FAILS(hr_dataset_combine(NULL, NULL, NULL, 0, &dataset));
  NULL_FAILS(hr_dataset_combine("zip", NULL, NULL, 1, &dataset));
  NULL_FAILS(hr_dataset_describe(dataset, NULL));
  NULL_FAILS(hr_dataset_field(dataset, 0, NULL));
  NULL_FAILS(hr_dataset_class(dataset, 0, NULL));
  NULL_FAILS(hr_dataset_explain(dataset, NULL, NULL));
  NULL_FAILS(hr_loader_open(NULL, devices, NULL, &loader));
  NULL_FAILS(hr_loader_open(dataset, NULL, NULL, &loader));
  NULL_FAILS(hr_loader_open(dataset, devices, NULL, NULL));
  NULL_FAILS(hr_loader_next(NULL, 0, &batch));
  NULL_FAILS(hr_loader_next(loader, 0, NULL));
  NULL_FAILS(hr_loader_stop(NULL));
  NULL_FAILS(hr_loader_describe(loader, NULL));
  NULL_FAILS(hr_loader_field(NULL, 0, &field));
  NULL_FAILS(hr_loader_state(loader, NULL));
  NULL_FAILS(hr_loader_trace(NULL, &text));
  NULL_FAILS(hr_loader_stats(loader, NULL));
  NULL_FAILS(hr_loader_stats_json(loader, NULL));
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
  NULL_FAILS(hr_digest_create(NULL, &digest));
  NULL_FAILS(hr_digest_next(digest, NULL, NULL, &flag));
  NULL_FAILS(hr_digest_next(digest, loader, NULL, NULL));
  NULL_FAILS(hr_digest_finish(digest, NULL));

  hr_inspection_free(inspection);
  hr_tally_free(tally);
  hr_digest_free(digest);
  hr_cache_free(cache);
  hr_operations_free(chain);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  hr_source_free(source);
  hr_devices_free(devices);
  hr_digest_free(NULL);
  hr_filter_free(NULL);
  hr_cache_free(NULL);
  hr_operations_free(NULL);
  hr_batch_free(NULL);
  hr_loader_free(NULL);
  hr_dataset_free(NULL);
  hr_source_free(NULL);
  hr_devices_free(NULL);
  hr_string_free(NULL);
}

static void test_sizes(void) {
  hr_dataset* dataset = dataset_of(numbers(8));
  hr_devices* devices = cpus(1);
  hr_loader* loader = NULL;
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 4}"));
  hr_loader_options none = {0};
  FAILS(HR_INVALID_ARGUMENT, "hr_loader_options.size is 0 (initialise it with HR_LOADER_OPTIONS_INIT)",
        hr_loader_open(dataset, devices, &none, &loader));

  struct {
    hr_loader_options known;
    uint64_t later;
  } newer = {HR_LOADER_OPTIONS_INIT, 0};
  newer.known.size = sizeof newer;
  OK(hr_loader_open(dataset, devices, &newer.known, &loader));
  hr_loader_free(loader);
  newer.later = 1;
  FAILS(HR_INVALID_ARGUMENT, "members that this version of Headrace does not know",
        hr_loader_open(dataset, devices, &newer.known, &loader));

  /* Of before all but the first option were added. */
  struct {
    size_t size;
    uint64_t seed;
  } older = {sizeof older, 4};
  OK(hr_loader_open(dataset, devices, (const hr_loader_options*)&older, &loader));
  hr_loader_free(loader);
  hr_devices_free(devices);
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
