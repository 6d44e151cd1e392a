/* A process as its launcher's variables describe it, and its share of a stream. */
#include "headrace/tests/bindings/c/check.h"

static void launch(const char* rank, const char* workers) {
  setenv("RANK", rank, 1);
  setenv("WORLD_SIZE", workers, 1);
  setenv("LOCAL_RANK", rank, 1);
  setenv("LOCAL_WORLD_SIZE", workers, 1);
}

static void test_a_process_alone(void) {
  hr_worker worker = HR_WORKER_INIT;
  OK(hr_worker_describe(&worker));
  CHECK(worker.rank == 0 && worker.workers == 1 && worker.local_rank == -1 && worker.local_workers == -1);
  hr_dataset* dataset = numbers_in_batches(6, 6);
  hr_loader_calls calls = HR_LOADER_CALLS_INIT;
  calls.worker = &worker;
  hr_loader* loader = NULL;
  OK(open_on_one(dataset, NULL, &calls, &loader));
  hr_batch* batch = next_of(loader);
  CHECK(info_of(batch).examples == 6);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

/* Each of three workers with two devices gets two rows of six, and together they get all. */
static void test_shares_of_a_batch(void) {
  hr_dataset* dataset = numbers_in_batches(6, 6);
  hr_devices* devices = cpus(2);
  for (int rank = 0; rank < 3; ++rank) {
    char text[8];
    snprintf(text, sizeof text, "%d", rank);
    launch(text, "3");
    hr_worker worker = HR_WORKER_INIT;
    hr_loader_calls calls = HR_LOADER_CALLS_INIT;
    OK(hr_worker_describe(&worker));
    CHECK(worker.rank == rank && worker.workers == 3 && worker.local_rank == rank && worker.local_workers == 3);
    calls.worker = &worker;
    hr_loader* loader = NULL;
    OK(hr_loader_open(dataset, devices, NULL, &calls, &loader));
    for (int replica = 0; replica < 2; ++replica) {
      hr_batch* batch = NULL;
      OK(hr_loader_next(loader, replica, &batch));
      CHECK(value_of(batch, "value", 0) == 2 * rank + replica);
      hr_batch_free(batch);
    }
    hr_loader_free(loader);
  }
  hr_devices_free(devices);
  hr_dataset_free(dataset);
}

static void test_refusals(void) {
  hr_worker worker = HR_WORKER_INIT;
  launch("one", "3");
  FAILS(HR_INVALID_ARGUMENT, "RANK", hr_worker_describe(&worker));
  launch("1", "3");
  FAILS(HR_INVALID_ARGUMENT, "worker", hr_worker_describe(NULL));
  worker.size = 3;
  FAILS(HR_INVALID_ARGUMENT, "HR_WORKER_INIT", hr_worker_describe(&worker));
  hr_dataset* dataset = numbers_in_batches(6, 6);
  hr_loader* loader = NULL;
  hr_loader_calls calls = HR_LOADER_CALLS_INIT;
  calls.worker = &worker;
  FAILS(HR_INVALID_ARGUMENT, "HR_WORKER_INIT", open_on_one(dataset, NULL, &calls, &loader));
  worker = (hr_worker)HR_WORKER_INIT;
  FAILS(HR_INVALID_ARGUMENT, "the worker says which replicas are served, and so do the options",
        open_on_one(dataset, "{\"world_replicas\": 4}", &calls, &loader));
  hr_dataset_free(dataset);
}

int main(void) {
  test_a_process_alone();
  test_shares_of_a_batch();
  test_refusals();
  return end_of_test();
}
