/* A thread that waits for a filter to judge all records may leave the pass. */
#include <stdatomic.h>
#include <unistd.h>

#include "headrace/tests/bindings/c/check.h"

static atomic_bool stands_still, interrupted;
static atomic_int released;

/* Stands still at the seventh record until somebody gives up. */
static hr_status keep_slowly(void* user, const hr_example* example, bool* keep) {
  int64_t value = 0;
  const hr_status status = hr_example_integer(example, "value", &value);
  (void)user;
  *keep = true;
  if (value == 7) atomic_store(&stands_still, true);
  while (value == 7 && !atomic_load(&interrupted)) usleep(1000);
  return status;
}

static hr_status give_up(void* user) {
  if (atomic_load(&interrupted) || !atomic_load(&stands_still)) return HR_OK;
  CHECK(*(const int*)user == 42);
  FAILS(HR_INVALID_ARGUMENT, "called by a callback", hr_set_scan_poll(NULL, (hr_user){NULL, NULL}));
  atomic_store(&interrupted, true);
  return hr_fail(HR_CANCELLED, "the program was interrupted", NULL);
}

static void count_release(void* data) {
  (void)data;
  atomic_fetch_add(&released, 1);
}

static hr_dataset* slow_numbers(void) {
  atomic_store(&stands_still, false);
  atomic_store(&interrupted, false);
  hr_dataset* dataset = dataset_of(numbers(100));
  hr_filter* filter = NULL;
  hr_filter_options options = HR_FILTER_OPTIONS_INIT;
  options.name = "slow";
  options.keeps = keep_slowly;
  options.stall_timeout_seconds = 0;
  OK(hr_filter_create(&options, &filter));
  OK(hr_dataset_filter(dataset, filter));
  hr_filter_free(filter);
  OK(hr_dataset_add(dataset, "batch", NULL));
  return dataset;
}

static void test_a_loader_that_opens(void) {
  hr_dataset* dataset = slow_numbers();
  hr_devices* devices = cpus(1);
  hr_loader* loader = NULL;
  int seen = 42;
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.while_waiting = give_up;
  options.user.data = &seen;
  FAILS(HR_CANCELLED, "the program was interrupted", hr_loader_open(dataset, devices, &options, &loader));
  CHECK(loader == NULL);
  OK(hr_loader_open(dataset, devices, &options, &loader));
  hr_loader_free(loader);
  hr_devices_free(devices);
  hr_dataset_free(dataset);
}

static void test_a_dataset_that_is_counted(void) {
  hr_dataset* dataset = slow_numbers();
  int seen = 42;
  OK(hr_set_scan_poll(give_up, (hr_user){&seen, count_release}));
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  FAILS(HR_CANCELLED, "the program was interrupted", hr_dataset_describe(dataset, &info));
  CHECK(records_of(dataset) == 100);
  CHECK(atomic_load(&released) == 0);
  OK(hr_set_scan_poll(NULL, (hr_user){NULL, NULL}));
  CHECK(atomic_load(&released) == 1);
  hr_dataset_free(dataset);
}

int main(void) {
  test_a_loader_that_opens();
  test_a_dataset_that_is_counted();
  return end_of_test();
}
