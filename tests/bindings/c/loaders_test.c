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
  OK(hr_loader_open(dataset, devices, NULL, NULL, &loader));
  hr_loader_info info = HR_LOADER_INFO_INIT;
  OK(hr_loader_describe(loader, &info));
  CHECK(info.replicas == 2 && info.local_rows == 2 && info.steps_per_epoch == 3 && info.threads >= 1);
  int64_t examples = 0;
  for (int step = 0; step < 3; ++step) {
    for (int32_t replica = 0; replica < 2; ++replica) {
      hr_batch* batch = NULL;
      OK(hr_loader_next(loader, replica, &batch));
      const hr_batch_info of = info_of(batch);
      CHECK(of.step == (uint64_t)step && of.sequence == (uint64_t)step && of.epoch == 0);
      CHECK(of.device_type == HR_DEVICE_CPU && of.rows == 2 && of.tensor_count == 1 && of.writable);
      CHECK(of.last_of_epoch == (step == 2));
      const uint64_t* records = NULL;
      size_t count = 0;
      OK(hr_batch_records(batch, &records, &count));
      CHECK(count == (size_t)of.examples);
      for (size_t i = 0; i < count; ++i) CHECK(value_of(batch, "value", i) == (int64_t)records[i]);
      examples += of.examples;
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
  hr_loader* loader = loader_of(dataset, "{\"in_order\": false, \"epochs\": 2}");
  unsigned seen = 0;
  for (int i = 0; i < 10; ++i) {
    hr_batch* batch = next_of(loader);
    const hr_batch_info of = info_of(batch);
    CHECK(of.epoch == (uint64_t)(i / 5) && of.last_of_epoch == (i % 5 == 4));
    CHECK(value_of(batch, "value", 0) == (int64_t)of.step * 4);
    seen |= 1U << of.sequence;
    hr_batch_free(batch);
  }
  CHECK(seen == (1U << 10) - 1);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_even_shares(void) {
  hr_dataset* dataset = numbers_in_batches(21, 4);
  for (int drop = 0; drop < 2; ++drop) {
    hr_loader* loader = loader_of(
        dataset,
        with("{\"world_replicas\": 2, \"world_first\": 1, \"even_shares\": \"%s\"}", drop ? "drop" : "repeat"));
    const int batches = drop ? 5 : 6;
    for (int i = 0; i < batches; ++i) {
      hr_batch* batch = next_of(loader);
      const hr_batch_info of = info_of(batch);
      CHECK(of.examples == (i < 5 ? 2 : 1) && of.repeats == (i < 5 ? 0 : 1));
      CHECK(value_of(batch, "value", 0) == (i < 5 ? i * 4 + 2 : 20));
      CHECK(of.last_of_epoch == (i + 1 == batches));
      hr_batch_free(batch);
    }
    CHECK(next_of(loader) == NULL);
    hr_loader_free(loader);
  }
  hr_dataset_free(dataset);
}

static void test_state(void) {
  hr_dataset* dataset = numbers_in_batches(20, 4);
  OK(hr_dataset_add(dataset, "prefetch", "{\"batches\": 3}", NULL));
  hr_loader* loader = loader_of(dataset, "{\"seed\": 5, \"epochs\": 2}");
  for (int i = 0; i < 7; ++i) hr_batch_free(next_of(loader));
  char* state = NULL;
  OK(hr_loader_state(loader, &state));
  hr_loader_free(loader);
  loader = loader_of(dataset, with("{\"seed\": 5, \"epochs\": 2, \"threads\": 2, \"start\": \"%s\"}", state));
  hr_batch* batch = next_of(loader);
  const hr_batch_info of = info_of(batch);
  CHECK(of.sequence == 7 && of.epoch == 1 && of.step == 2);
  hr_batch_free(batch);
  hr_loader_free(loader);
  FAILS(HR_INVALID_ARGUMENT, "",
        open_on_one(dataset, with("{\"seed\": 6, \"start\": \"%s\"}", state), NULL, &loader));
  hr_string_free(state);
  hr_dataset_free(dataset);
}

/* Options, and what is wrong with them. */
static void test_refused_options(void) {
  hr_dataset* dataset = numbers_in_batches(1 << 16, 1 << 14);
  static const char* const refused[][2] = {
      {"{\"start\": \"nonsense\"}", "'nonsense' is no loader state"},
      {"{\"memory_budget_bytes\": 1000}", "bytes are needed"},
      {"{\"threads\": 3, \"cpu_budget\": 2}", "threads = 3 is more than cpu_budget = 2"},
      {"{\"in_order\": false, \"world_replicas\": 2}", "in_order = false: the loader serves 1 of 2 replicas"},
      {"{\"on_error\": \"stop\"}",
       "options of a loader at on_error: \"stop\" is not among the choices (write fail, skip or substitute)"},
      {"{\"even_shares\": 1}", "options of a loader at even_shares: 1 where a text is needed"},
      {"{\"converted\": \"f8\"}", "options of a loader at converted: \"f8\" is not among the choices"},
      {"{\"threads\": \"four\"}", "options of a loader at threads: \"four\" where a whole number"},
      {"{\"trheads\": 4}", "options of a loader: there is no option \"trheads\": did you mean 'threads'?"},
      {"{\"seed\": 1, \"seed\": 2}", "options of a loader: \"seed\" occurs twice in one object"},
      {"{seed: 1}", "options of a loader: is no JSON: line 1, column 2"},
      {"[]", "options of a loader: a list where an object is needed"}};
  hr_loader* loader = NULL;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
    FAILS(HR_INVALID_ARGUMENT, refused[i][1], open_on_one(dataset, refused[i][0], NULL, &loader));
  CHECK(loader == NULL);
  hr_dataset_free(dataset);
}

/* Each option of LoaderOptions in C++ that is data, with a value that is accepted. */
static void test_every_option(void) {
  hr_dataset* dataset = numbers_in_batches(16, 4);
  hr_loader* loader = loader_of(
      dataset,
      "{\"seed\": 1, \"epochs\": 2, \"world_replicas\": 2, \"world_first\": 1, \"threads\": 1, "
      "\"reader_threads\": 1,"
      " \"prefetch\": 2, \"in_order\": true, \"even_shares\": \"off\", \"start\": \"\", \"on_error\": "
      "\"substitute\","
      " \"max_bad_share\": 0.5, \"quarantine\": \"bad.jsonl\", \"convert\": \"host\", \"converted\": \"float32\","
      " \"resident\": \"never\", \"memory_budget_bytes\": 100000000, \"pinned_budget_bytes\": 0,"
      " \"resident_budget_bytes\": 0, \"cpu_budget\": 1, \"reader_limit\": 2, \"numa_node\": -1, \"core_type\": "
      "-1,"
      " \"stall_timeout_seconds\": 9.5, \"trace_spans\": 8, \"headspace\": 2}");
  hr_batch* batch = next_of(loader);
  CHECK(!info_of(batch).writable); /* headspace hands out the same bytes again */
  char* state = NULL;
  FAILS(HR_INVALID_ARGUMENT, "headspace", hr_loader_state(loader, &state));
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_stats_and_trace(void) {
  hr_dataset* dataset = numbers_in_batches(64, 4);
  hr_loader* loader = loader_of(dataset, "{\"trace_spans\": 64}");
  for (int i = 0; i < 8; ++i) hr_batch_free(next_of(loader));
  char* json = NULL;
  OK(hr_loader_stats(loader, &json));
  CHECK(number_in(json, "examples") == 32 && number_in(json, "bytes") >= 32 * 8);
  CHECK(number_in(json, "slots") >= 2 && number_in(json, "elapsed_ns") > 0);
  static const char* const words[] = {"\"batches\":8", "\"stages\":[{",         "\"choices\":[{",
                                      "\"verdict\":{", "\"what\":\"prefetch\"", "\"cache_trouble\":\"\""};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) CHECK(strstr(json, words[i]) != NULL);
  hr_string_free(json);
  SAYS("traceEvents", hr_loader_trace(loader, &text));
  SAYS("assembler", hr_loader_trace(loader, &text));
  hr_loader_free(loader);
  loader = loader_of(dataset, NULL);
  FAILS(HR_INVALID_ARGUMENT, "not asked to trace", hr_loader_trace(loader, &json));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_world(void) {
  hr_dataset* dataset = numbers_in_batches(8, 8);
  hr_loader* loader = loader_of(dataset, "{\"world_replicas\": 4, \"world_first\": 2}");
  hr_batch* batch = next_of(loader);
  const hr_batch_info of = info_of(batch);
  CHECK(of.examples == 2 && of.global_examples == 8 && of.first_row == 4);
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
  const hr_tensor view = tensor_of(second, "value");
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
  hr_loader* loader = loader_of(dataset, "{\"prefetch\": 1, \"stall_timeout_seconds\": 1}");
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
  hr_loader_calls calls = HR_LOADER_CALLS_INIT;
  calls.while_waiting = give_up;
  calls.user = (hr_user){&looks, count_release};
  released = 0;
  hr_loader* loader = NULL;
  OK(open_on_one(dataset, "{\"prefetch\": 0}", &calls, &loader));
  hr_batch *held = next_of(loader), *batch = NULL;
  FAILS(HR_CANCELLED, "the program was interrupted", hr_loader_next(loader, 0, &batch));
  CHECK(looks == 2);
  hr_batch_free(held);
  batch = next_of(loader);
  CHECK(value_of(batch, "value", 0) == 2);
  hr_batch_free(batch);
  hr_loader_free(loader);
  CHECK(released == 1);
  hr_dataset_free(dataset);
}

static void* stop_later(void* loader) {
  usleep(20000);
  hr_loader_stop(loader);
  return NULL;
}

static void test_stop_wakes_who_waits(void) {
  hr_dataset* dataset = numbers_in_batches(100, 2);
  hr_loader* loader = loader_of(dataset, "{\"prefetch\": 0}");
  hr_batch *held = next_of(loader), *batch = NULL;
  pthread_t stopper;
  CHECK(pthread_create(&stopper, NULL, stop_later, loader) == 0);
  FAILS(HR_CANCELLED, "stopped", hr_loader_next(loader, 0, &batch));
  pthread_join(stopper, NULL);
  hr_batch_free(held);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_digests(void) {
  hr_dataset* dataset = numbers_in_batches(30, 8);
  char* digests[2];
  for (int replicas = 1; replicas <= 2; ++replicas) {
    hr_devices* devices = cpus(replicas);
    hr_loader* loader = NULL;
    OK(hr_loader_open(dataset, devices, NULL, NULL, &loader));
    hr_devices_free(devices);
    OK(hr_loader_digest(loader, 0, &digests[replicas - 1]));
    hr_loader_free(loader);
  }
  CHECK(strcmp(digests[0], digests[1]) == 0);
  CHECK(strstr(digests[0], "{\"batches\":[{\"epoch\":0,\"step\":0,\"examples\":8,\"sha256\":\"") == digests[0]);
  CHECK(strstr(digests[0], "\"step\":3,\"examples\":6,") != NULL && strstr(digests[0], "\"end\":true}") != NULL);
  hr_string_free(digests[0]);
  hr_string_free(digests[1]);
  hr_loader* loader = loader_of(dataset, "{\"in_order\": false}");
  SAYS("],\"sha256\":null,\"end\":false}", hr_loader_digest(loader, 2, &text));
  SAYS("],\"sha256\":null,\"end\":true}", hr_loader_digest(loader, 0, &text));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

int main(void) {
  test_an_epoch();
  test_any_order();
  test_even_shares();
  test_state();
  test_refused_options();
  test_every_option();
  test_stats_and_trace();
  test_world();
  test_batches_outlive_everything();
  test_a_tensor_holds_the_slot();
  test_waiting_can_be_interrupted();
  test_stop_wakes_who_waits();
  test_digests();
  return end_of_test();
}
