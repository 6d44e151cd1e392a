/* What the C programs of this folder share: checks that say what failed and go on, and small plans. */
#ifndef HEADRACE_TESTS_BINDINGS_C_CHECK_H_
#define HEADRACE_TESTS_BINDINGS_C_CHECK_H_

#include <headrace/headrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static inline void note_failure(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
  ++failures;
}

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) note_failure(__FILE__, __LINE__, "not true: " #condition); \
  } while (0)

/* A call that succeeds; where it does not, nothing behind it can be relied on. */
#define OK(call)                                                                            \
  do {                                                                                      \
    if ((call) != HR_OK) {                                                                  \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hr_last_error()->what); \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

/* A call that fails with this status and says `words`. */
#define FAILS(expected, words, call)                                                                         \
  do {                                                                                                       \
    const hr_status got = (call);                                                                            \
    if (got != (expected) || hr_last_error()->code != got || strstr(hr_last_error()->what, words) == NULL) { \
      fprintf(stderr, "%s:%d: %s: %s '%s', expected %s and '%s'\n", __FILE__, __LINE__, #call,               \
              hr_status_name(got), hr_last_error()->what, hr_status_name(expected), words);                  \
      ++failures;                                                                                            \
    }                                                                                                        \
  } while (0)

/* Records that are their own number, i64, called "value". */
static inline hr_source* numbers(int64_t count) {
  int64_t* values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; ++i) values[i] = i;
  const hr_array array = {
      .field = {.name = "value", .dtype = HR_I64}, .data = values, .bytes = (size_t)count * sizeof *values};
  hr_memory_options options = HR_MEMORY_OPTIONS_INIT;
  options.name = "numbers";
  options.records = (uint64_t)count;
  options.arrays = &array;
  options.array_count = 1;
  hr_source* source = NULL;
  OK(hr_source_in_memory(&options, &source));
  free(values);
  return source;
}

static inline hr_dataset* dataset_of(hr_source* source) {
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from(source, &dataset));
  hr_source_free(source);
  return dataset;
}

/* Adds a stage with one option, a number. */
static inline void add_number(hr_dataset* dataset, const char* stage, const char* option, int64_t value) {
  char options[64];
  snprintf(options, sizeof options, "{\"%s\": %lld}", option, (long long)value);
  OK(hr_dataset_add(dataset, stage, options));
}

static inline hr_dataset* numbers_in_batches(int64_t count, int64_t global) {
  hr_dataset* dataset = dataset_of(numbers(count));
  add_number(dataset, "batch", "global_batch", global);
  return dataset;
}

static inline hr_devices* cpus(int replicas) {
  char spec[16];
  snprintf(spec, sizeof spec, "cpu:%d", replicas);
  hr_devices* devices = NULL;
  OK(hr_devices_open(spec, &devices));
  return devices;
}

static inline hr_loader* loader_of(const hr_dataset* dataset, const hr_loader_options* options) {
  hr_devices* devices = cpus(1);
  hr_loader* loader = NULL;
  OK(hr_loader_open(dataset, devices, options, &loader));
  hr_devices_free(devices);
  return loader;
}

static inline hr_batch* next_of(hr_loader* loader) {
  hr_batch* batch = NULL;
  OK(hr_loader_next(loader, 0, &batch));
  return batch;
}

/* A value of a batch's tensor of i64. */
static inline int64_t value_of(const hr_batch* batch, const char* field, size_t at) {
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_wait(batch));
  OK(hr_batch_tensor(batch, field, &tensor));
  return ((const int64_t*)tensor.data)[at];
}

static inline uint64_t records_of(const hr_dataset* dataset) {
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(dataset, &info));
  return info.records;
}

/* The whole stream's; to be freed. */
static inline char* digest_of(hr_loader* loader) {
  hr_digest* digest = NULL;
  OK(hr_digest_create(loader, &digest));
  for (bool end = false; !end;) OK(hr_digest_next(digest, loader, NULL, &end));
  char* sha256 = NULL;
  OK(hr_digest_finish(digest, &sha256));
  hr_digest_free(digest);
  return sha256;
}

static inline int end_of_test(void) {
  if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures > 0 ? 1 : 0;
}

#endif
