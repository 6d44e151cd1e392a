/* A thread that waits for a filter to judge all records may leave the pass. */
#include <unistd.h>

#include "headrace/tests/bindings/c/check.h"

static atomic_bool stands_still, interrupted;

/* Stands still at the seventh record until somebody gives up. */
static hr_status keep_slowly(void* user, const hr_sample* sample, bool* keep) {
  int64_t value = 0;
  const hr_status status = hr_sample_integer(sample, "value", &value);
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

static hr_dataset* slow_numbers(void) {
  atomic_store(&stands_still, false);
  atomic_store(&interrupted, false);
  hr_dataset* dataset = numbers(100);
  hr_parts* parts = NULL;
  OK(hr_parts_create(&parts));
  OK(hr_parts_add_filter(parts, "{\"name\": \"slow\", \"stall_timeout_seconds\": 0}", keep_slowly,
                         (hr_user){NULL, NULL}));
  OK(hr_dataset_add(dataset, "filter", "{\"named\": \"slow\"}", parts));
  hr_parts_free(parts);
  OK(hr_dataset_add(dataset, "batch", NULL, NULL));
  return dataset;
}

static void test_a_loader_that_opens(void) {
  hr_dataset* dataset = slow_numbers();
  hr_loader* loader = NULL;
  int seen = 42;
  hr_loader_calls calls = HR_LOADER_CALLS_INIT;
  calls.while_waiting = give_up;
  calls.user.data = &seen;
  FAILS(HR_CANCELLED, "the program was interrupted", open_on_one(dataset, NULL, &calls, &loader));
  CHECK(loader == NULL);
  OK(open_on_one(dataset, NULL, &calls, &loader));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_a_dataset_that_is_counted(void) {
  hr_dataset* dataset = slow_numbers();
  int seen = 42;
  OK(hr_set_scan_poll(give_up, (hr_user){&seen, count_release}));
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  FAILS(HR_CANCELLED, "the program was interrupted", hr_dataset_describe(dataset, &info));
  CHECK(records_of(dataset) == 100 && released == 0);
  OK(hr_set_scan_poll(NULL, (hr_user){NULL, NULL}));
  CHECK(released == 1);
  hr_dataset_free(dataset);
}

int main(void) {
  test_a_loader_that_opens();
  test_a_dataset_that_is_counted();
  return end_of_test();
}
