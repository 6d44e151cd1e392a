/* Running plans: batches, states, statistics, and what outlives what. */
#include <pthread.h>
#include <unistd.h>

#include "headrace/tests/bindings/c/check.h"

/* As DLPack lays it out. */
typedef struct DLTensor {
  void* data;
  struct {
    int32_t device_type, device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
};

static void test_an_epoch(void) {
  hr_dataset* dataset = numbers_in_batches(10, 4);
  hr_devices* devices = cpus(2);
  hr_loader* loader = NULL;
  OK(hr_loader_open(dataset, devices, NULL, &loader));
  hr_loader_info info = HR_LOADER_INFO_INIT;
  OK(hr_loader_describe(loader, &info));
  CHECK(info.replicas == 2 && info.local_rows == 2 && info.steps_per_epoch == 3 && info.field_count == 1);
  CHECK(info.threads >= 1);
  hr_field field;
  OK(hr_loader_field(loader, 0, &field));
  CHECK(strcmp(field.name, "value") == 0);
  int64_t examples = 0;
  for (int step = 0; step < 3; ++step) {
    for (int32_t replica = 0; replica < 2; ++replica) {
      hr_batch* batch = NULL;
      OK(hr_loader_next(loader, replica, &batch));
      hr_batch_info about = HR_BATCH_INFO_INIT;
      OK(hr_batch_describe(batch, &about));
      CHECK(about.step == (uint64_t)step && about.sequence == (uint64_t)step && about.epoch == 0);
      CHECK(about.device_type == HR_DEVICE_CPU && about.rows == 2 && about.tensor_count == 1 && about.writable);
      CHECK(about.last_of_epoch == (step == 2));
      const uint64_t* records = NULL;
      size_t count = 0;
      OK(hr_batch_records(batch, &records, &count));
      CHECK(count == (size_t)about.examples);
      for (size_t i = 0; i < count; ++i) CHECK(value_of(batch, "value", i) == (int64_t)records[i]);
      examples += about.examples;
      bool ready = false;
      OK(hr_batch_is_ready(batch, &ready));
      CHECK(ready);
      OK(hr_batch_use_in(batch, 0)); /* on the CPU the host waits */
      hr_batch_free(batch);
    }
  }
  CHECK(examples == 10);
  hr_batch* batch = (hr_batch*)&examples;
  OK(hr_loader_next(loader, 0, &batch));
  CHECK(batch == NULL);
  FAILS(HR_INVALID_ARGUMENT, "next(2): there are 2 replicas", hr_loader_next(loader, 2, &batch));
  const char* name = NULL;
  OK(hr_devices_name(devices, 1, &name));
  CHECK(strcmp(name, "cpu:1") == 0);
  hr_loader_free(loader);
  hr_devices_free(devices);
  hr_dataset_free(dataset);
}

static void test_any_order(void) {
  hr_dataset* dataset = numbers_in_batches(20, 4);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  CHECK(options.in_order);
  options.in_order = false;
  options.epochs = 2;
  hr_loader* loader = loader_of(dataset, &options);
  unsigned seen = 0;
  for (int i = 0; i < 10; ++i) {
    hr_batch* batch = next_of(loader);
    hr_batch_info about = HR_BATCH_INFO_INIT;
    OK(hr_batch_describe(batch, &about));
    CHECK(about.epoch == (uint64_t)(i / 5) && about.last_of_epoch == (i % 5 == 4));
    CHECK(value_of(batch, "value", 0) == (int64_t)about.step * 4);
    seen |= 1U << about.sequence;
    hr_batch_free(batch);
  }
  CHECK(seen == (1U << 10) - 1);
  hr_loader_free(loader);
  hr_devices* devices = cpus(1);
  options.world_replicas = 2;
  FAILS(HR_INVALID_ARGUMENT, "in_order = false: the loader serves 1 of 2 replicas",
        hr_loader_open(dataset, devices, &options, &loader));
  hr_devices_free(devices);
  hr_dataset_free(dataset);
}

static void test_even_shares(void) {
  hr_dataset* dataset = numbers_in_batches(21, 4);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  CHECK(options.even_shares == HR_EVEN_SHARES_OFF);
  options.world_replicas = 2;
  options.world_first = 1;
  for (int even = HR_EVEN_SHARES_REPEAT; even <= HR_EVEN_SHARES_DROP; ++even) {
    options.even_shares = even;
    hr_loader* loader = loader_of(dataset, &options);
    const int batches = even == HR_EVEN_SHARES_REPEAT ? 6 : 5;
    for (int i = 0; i < batches; ++i) {
      hr_batch* batch = next_of(loader);
      hr_batch_info about = HR_BATCH_INFO_INIT;
      OK(hr_batch_describe(batch, &about));
      CHECK(about.examples == (i < 5 ? 2 : 1) && about.repeats == (i < 5 ? 0 : 1));
      CHECK(value_of(batch, "value", 0) == (i < 5 ? i * 4 + 2 : 20));
      CHECK(about.last_of_epoch == (i + 1 == batches));
      hr_batch_free(batch);
    }
    hr_batch* none = NULL;
    OK(hr_loader_next(loader, 0, &none));
    CHECK(none == NULL);
    hr_loader_free(loader);
  }
  options.even_shares = 3;
  hr_devices* devices = cpus(1);
  hr_loader* loader = NULL;
  FAILS(HR_INVALID_ARGUMENT, "even_shares = 3 is none of its values",
        hr_loader_open(dataset, devices, &options, &loader));
  hr_devices_free(devices);
  hr_dataset_free(dataset);
}

static void test_state(void) {
  hr_dataset* dataset = numbers_in_batches(20, 4);
  OK(hr_dataset_add(dataset, "prefetch", "{\"batches\": 3}"));
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.seed = 5;
  options.epochs = 2;
  hr_loader* loader = loader_of(dataset, &options);
  for (int i = 0; i < 7; ++i) hr_batch_free(next_of(loader));
  char* state = NULL;
  OK(hr_loader_state(loader, &state));
  hr_loader_free(loader);
  options.start = state;
  options.threads = 2;
  loader = loader_of(dataset, &options);
  hr_batch* batch = next_of(loader);
  hr_batch_info about = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &about));
  CHECK(about.sequence == 7 && about.epoch == 1 && about.step == 2);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_devices* devices = cpus(1);
  options.seed = 6;
  FAILS(HR_INVALID_ARGUMENT, "", hr_loader_open(dataset, devices, &options, &loader));
  options.start = "nonsense";
  FAILS(HR_INVALID_ARGUMENT, "'nonsense' is no loader state", hr_loader_open(dataset, devices, &options, &loader));
  hr_devices_free(devices);
  hr_string_free(state);
  hr_dataset_free(dataset);
}

static void test_stats_and_trace(void) {
  hr_dataset* dataset = numbers_in_batches(64, 4);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.trace_spans = 64;
  hr_loader* loader = loader_of(dataset, &options);
  for (int i = 0; i < 8; ++i) hr_batch_free(next_of(loader));
  hr_stats stats = HR_STATS_INIT;
  OK(hr_loader_stats(loader, &stats));
  CHECK(stats.batches == 8 && stats.examples == 32 && stats.bytes >= 32 * 8 && stats.slots >= 2 &&
        stats.elapsed_ns > 0);
  char* json = NULL;
  OK(hr_loader_stats_json(loader, &json));
  static const char* const words[] = {"\"batches\":8", "\"stages\":[{", "\"choices\":[{", "\"verdict\":{",
                                      "\"what\":\"prefetch\""};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) CHECK(strstr(json, words[i]) != NULL);
  hr_string_free(json);
  OK(hr_loader_trace(loader, &json));
  CHECK(strstr(json, "traceEvents") != NULL && strstr(json, "assembler") != NULL);
  hr_string_free(json);
  hr_loader_free(loader);
  loader = loader_of(dataset, NULL);
  FAILS(HR_INVALID_ARGUMENT, "not asked to trace", hr_loader_trace(loader, &json));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_world(void) {
  hr_dataset* dataset = numbers_in_batches(8, 8);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.world_replicas = 4;
  options.world_first = 2;
  hr_loader* loader = loader_of(dataset, &options);
  hr_batch* batch = next_of(loader);
  hr_batch_info about = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &about));
  CHECK(about.examples == 2 && about.global_examples == 8 && about.first_row == 4);
  CHECK(value_of(batch, "value", 0) == 4);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_batches_outlive_everything(void) {
  hr_dataset* dataset = numbers_in_batches(100, 50);
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch *first = next_of(loader), *second = next_of(loader);
  struct DLManagedTensorVersioned* tensor = NULL;
  struct DLManagedTensor* legacy = NULL;
  OK(hr_batch_dlpack(second, "value", NULL, &tensor));
  hr_dlpack_options options = HR_DLPACK_OPTIONS_INIT;
  options.read_only = true;
  OK(hr_batch_legacy_dlpack(second, "value", &options, &legacy));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  CHECK(value_of(first, "value", 49) == 49);
  hr_tensor view = HR_TENSOR_INIT;
  OK(hr_batch_tensor(second, "value", &view));
  CHECK(tensor->dl_tensor.data == view.data && legacy->dl_tensor.data == view.data);
  hr_batch_free(second);
  hr_batch_free(first);
  CHECK(tensor->version.major == 1 && tensor->flags == 0 && tensor->dl_tensor.device.device_type == HR_DEVICE_CPU);
  CHECK(tensor->dl_tensor.ndim == 1 && tensor->dl_tensor.shape[0] == 50 && tensor->dl_tensor.strides[0] == 1);
  CHECK(tensor->dl_tensor.dtype.bits == 64 && tensor->dl_tensor.dtype.lanes == 1);
  legacy->deleter(legacy);
  CHECK(((const int64_t*)tensor->dl_tensor.data)[49] == 99);
  tensor->deleter(tensor);
}

static void test_a_tensor_holds_the_slot(void) {
  hr_dataset* dataset = numbers_in_batches(100, 2);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.prefetch = 1;
  options.stall_timeout_seconds = 1;
  hr_loader* loader = loader_of(dataset, &options);
  struct DLManagedTensorVersioned* tensors[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    hr_batch* batch = next_of(loader);
    OK(hr_batch_dlpack(batch, "value", NULL, &tensors[i]));
    hr_batch_free(batch);
  }
  hr_batch* batch = NULL;
  FAILS(HR_TIMEOUT, "held by the consumer", hr_loader_next(loader, 0, &batch));
  tensors[0]->deleter(tensors[0]);
  batch = next_of(loader);
  CHECK(value_of(batch, "value", 0) == 4);
  hr_batch_free(batch);
  tensors[1]->deleter(tensors[1]);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static hr_status give_up(void* user) {
  return ++*(int*)user == 2 ? hr_fail(HR_CANCELLED, "the program was interrupted", NULL) : HR_OK;
}

static void test_waiting_can_be_interrupted(void) {
  hr_dataset* dataset = numbers_in_batches(100, 2);
  int looks = 0;
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.prefetch = 0;
  options.while_waiting = give_up;
  options.user.data = &looks;
  hr_loader* loader = loader_of(dataset, &options);
  hr_batch *held = next_of(loader), *batch = NULL;
  FAILS(HR_CANCELLED, "the program was interrupted", hr_loader_next(loader, 0, &batch));
  CHECK(looks == 2);
  hr_batch_free(held);
  batch = next_of(loader);
  CHECK(value_of(batch, "value", 0) == 2);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void* stop_later(void* loader) {
  usleep(20000);
  hr_loader_stop(loader);
  return NULL;
}

static void test_stop_wakes_who_waits(void) {
  hr_dataset* dataset = numbers_in_batches(100, 2);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.prefetch = 0;
  hr_loader* loader = loader_of(dataset, &options);
  hr_batch *held = next_of(loader), *batch = NULL;
  pthread_t stopper;
  CHECK(pthread_create(&stopper, NULL, stop_later, loader) == 0);
  FAILS(HR_CANCELLED, "stopped", hr_loader_next(loader, 0, &batch));
  pthread_join(stopper, NULL);
  hr_batch_free(held);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_budgets(void) {
  hr_dataset* dataset = numbers_in_batches(1 << 16, 1 << 14);
  hr_devices* devices = cpus(1);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.memory_budget_bytes = 1000;
  hr_loader* loader = NULL;
  FAILS(HR_INVALID_ARGUMENT, "bytes are needed", hr_loader_open(dataset, devices, &options, &loader));
  options.memory_budget_bytes = 0;
  options.threads = 3; /* options are called as their members */
  options.cpu_budget = 2;
  FAILS(HR_INVALID_ARGUMENT, "threads = 3 is more than cpu_budget = 2",
        hr_loader_open(dataset, devices, &options, &loader));
  options.threads = options.cpu_budget = 0;
  options.on_error = 3;
  FAILS(HR_INVALID_ARGUMENT, "on_error = 3", hr_loader_open(dataset, devices, &options, &loader));
  options.on_error = HR_ON_ERROR_SUBSTITUTE;
  options.headspace = 2;
  OK(hr_loader_open(dataset, devices, &options, &loader));
  hr_batch* batch = next_of(loader);
  hr_batch_info about = HR_BATCH_INFO_INIT;
  OK(hr_batch_describe(batch, &about));
  CHECK(!about.writable);
  char* state = NULL;
  FAILS(HR_INVALID_ARGUMENT, "headspace", hr_loader_state(loader, &state));
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_devices_free(devices);
  hr_dataset_free(dataset);
}

static void test_digests(void) {
  hr_dataset* dataset = numbers_in_batches(30, 8);
  char* digests[2];
  for (int replicas = 1; replicas <= 2; ++replicas) {
    hr_devices* devices = cpus(replicas);
    hr_loader* loader = NULL;
    OK(hr_loader_open(dataset, devices, NULL, &loader));
    hr_devices_free(devices);
    digests[replicas - 1] = digest_of(loader);
    hr_loader_free(loader);
  }
  CHECK(strlen(digests[0]) == 64 && strcmp(digests[0], digests[1]) == 0);
  hr_string_free(digests[0]);
  hr_string_free(digests[1]);
  hr_loader* loader = loader_of(dataset, NULL);
  hr_digest* digest = NULL;
  OK(hr_digest_create(loader, &digest));
  hr_batch_digest batch = HR_BATCH_DIGEST_INIT;
  bool end = true;
  OK(hr_digest_next(digest, loader, &batch, &end));
  CHECK(!end && batch.examples == 8 && strlen(batch.sha256) == 64);
  hr_digest_free(digest);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

int main(void) {
  test_an_epoch();
  test_any_order();
  test_even_shares();
  test_state();
  test_stats_and_trace();
  test_world();
  test_batches_outlive_everything();
  test_a_tensor_holds_the_slot();
  test_waiting_can_be_interrupted();
  test_stop_wakes_who_waits();
  test_budgets();
  test_digests();
  return end_of_test();
}
