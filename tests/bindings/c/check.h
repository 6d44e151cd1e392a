/* What the C programs of this folder share: checks that say what failed and go on, and small plans. */
#ifndef HEADRACE_TESTS_BINDINGS_C_CHECK_H_
#define HEADRACE_TESTS_BINDINGS_C_CHECK_H_

#include <headrace/headrace.h>
#include <stdarg.h>
#include <stdatomic.h>
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

/* A call that returns a text, which is printed where it lacks `words`; frees it. */
#define SAYS(words, call)                                                                    \
  do {                                                                                       \
    char* text = NULL;                                                                       \
    OK(call);                                                                                \
    if (strstr(text, words) == NULL) {                                                       \
      fprintf(stderr, "%s:%d: %s: no '%s' in %s\n", __FILE__, __LINE__, #call, words, text); \
      ++failures;                                                                            \
    }                                                                                        \
    hr_string_free(text);                                                                    \
  } while (0)

/* Options with numbers or texts in them; valid until the next call but three. */
static inline const char* with(const char* format, ...) {
  static char texts[4][1024];
  static int turn = 0;
  char* text = texts[turn++ % 4];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof texts[0], format, values);
  va_end(values);
  return text;
}

/* The number that JSON has under this name, first. */
static inline double number_in(const char* json, const char* name) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", name);
  const char* at = strstr(json, quoted);
  if (at == NULL) note_failure(__FILE__, __LINE__, name);
  return at != NULL ? strtod(at + strlen(quoted), NULL) : -1;
}

/* Records that are their own number, i64, called "value". */
static inline hr_dataset* numbers(int64_t count) {
  int64_t* values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; ++i) values[i] = i;
  const hr_array array = {
      .field = {.name = "value", .dtype = HR_I64}, .data = values, .bytes = (size_t)count * sizeof *values};
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_arrays(&array, 1, (uint64_t)count, "{\"name\": \"numbers\"}", &dataset));
  free(values);
  return dataset;
}

static inline hr_dataset* numbers_in_batches(int64_t count, int64_t global) {
  hr_dataset* dataset = numbers(count);
  OK(hr_dataset_add(dataset, "batch", with("{\"global_batch\": %lld}", (long long)global), NULL));
  return dataset;
}

static inline hr_devices* cpus(int replicas) {
  hr_devices* devices = NULL;
  OK(hr_devices_open(with("cpu:%d", replicas), &devices));
  return devices;
}

static inline hr_status open_on_one(const hr_dataset* dataset, const char* options, const hr_loader_calls* calls,
                                    hr_loader** loader) {
  hr_devices* devices = cpus(1);
  const hr_status status = hr_loader_open(dataset, devices, options, calls, loader);
  hr_devices_free(devices);
  return status;
}

static inline hr_loader* loader_of(const hr_dataset* dataset, const char* options) {
  hr_loader* loader = NULL;
  OK(open_on_one(dataset, options, NULL, &loader));
  return loader;
}

static inline hr_batch* next_of(hr_loader* loader) {
  hr_batch* batch = NULL;
  OK(hr_loader_next(loader, 0, &batch));
  return batch;
}

static inline hr_batch_info info_of(const hr_batch* batch) {
  hr_batch_info info = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &info));
  return info;
}

static inline hr_tensor tensor_of(const hr_batch* batch, const char* field) {
  hr_tensor tensor = HR_TENSOR_INIT;
  OK(hr_batch_wait(batch));
  OK(hr_batch_tensor(batch, field, &tensor));
  return tensor;
}

/* A value of a batch's tensor of i64. */
static inline int64_t value_of(const hr_batch* batch, const char* field, size_t at) {
  return ((const int64_t*)tensor_of(batch, field).data)[at];
}

static inline hr_dataset_info about(const hr_dataset* dataset) {
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(dataset, &info));
  return info;
}

static inline uint64_t records_of(const hr_dataset* dataset) { return about(dataset).records; }

static inline hr_field field_at(const hr_dataset* dataset, size_t index) {
  hr_field field;
  OK(hr_dataset_field(dataset, index, &field));
  return field;
}

static atomic_int released;

/* The `release` of a callback's data. */
static inline void count_release(void* data) {
  (void)data;
  ++released;
}

static inline int end_of_test(void) {
  if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures > 0 ? 1 : 0;
}

#endif
