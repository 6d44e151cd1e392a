/* A batch handed over as Arrow, and taken back as a source. */
#include "headrace/tests/bindings/c/check.h"

/* As Arrow's C data and C stream interfaces lay them out. */
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema* self);
  void* private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray* self);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream* self, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream* self, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream* self);
  void (*release)(struct ArrowArrayStream* self);
  void* private_data;
};

struct one_batch {
  struct ArrowSchema schema;
  struct ArrowArray array;
};

static int give_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  struct one_batch* batch = self->private_data;
  *out = batch->schema;
  batch->schema.release = NULL;
  return 0;
}
static int give_array(struct ArrowArrayStream* self, struct ArrowArray* out) {
  struct one_batch* batch = self->private_data;
  *out = batch->array;
  memset(&batch->array, 0, sizeof(batch->array));
  return 0;
}
static const char* give_error(struct ArrowArrayStream* self) {
  (void)self;
  return "";
}
static void end_stream(struct ArrowArrayStream* self) { self->release = NULL; }

static struct one_batch first_batch_of(hr_dataset* dataset) {
  hr_devices* devices = cpus(1);
  hr_loader* loader = NULL;
  hr_batch* batch = NULL;
  struct one_batch one;
  OK(hr_loader_open(dataset, devices, NULL, &loader));
  OK(hr_loader_next(loader, 0, &batch));
  OK(hr_batch_arrow(batch, &one.schema, &one.array));
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_devices_free(devices);
  return one;
}

static void test_there_and_back(void) {
  hr_dataset* dataset = numbers_in_batches(10, 4);
  struct one_batch one = first_batch_of(dataset);
  CHECK(strcmp(one.schema.format, "+s") == 0 && strcmp(one.schema.children[0]->name, "value") == 0);
  CHECK(one.array.length == 4 && one.array.n_children == 1);
  struct ArrowArrayStream stream = {give_schema, give_array, give_error, end_stream, &one};
  const char* columns[] = {"number=value"};
  hr_arrow_options options = HR_ARROW_OPTIONS_INIT;
  options.columns = columns;
  options.column_count = 1;
  hr_source* source = NULL;
  OK(hr_source_arrow(&stream, &options, &source));
  CHECK(stream.release == NULL);
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(info.records == 4 && info.field_count == 1 && strcmp(info.name, "arrow") == 0);
  hr_source_free(source);
  FAILS(HR_INVALID_ARGUMENT, "released or read already", hr_source_arrow(&stream, NULL, &source));
  hr_dataset_free(dataset);
}

static void test_refusals(void) {
  hr_dataset* dataset = numbers_in_batches(10, 4);
  struct one_batch one = first_batch_of(dataset);
  struct ArrowArrayStream stream = {give_schema, give_array, give_error, end_stream, &one};
  const char* columns[] = {"valeu"};
  hr_arrow_options options = HR_ARROW_OPTIONS_INIT;
  options.columns = columns;
  options.column_count = 1;
  hr_source* source = NULL;
  FAILS(HR_INVALID_ARGUMENT, "did you mean 'value'", hr_source_arrow(&stream, &options, &source));
  CHECK(source == NULL);
  FAILS(HR_INVALID_ARGUMENT, "stream", hr_source_arrow(NULL, NULL, &source));
  hr_dataset_free(dataset);
}

/* A program's table of batches that are made as they are asked for. */
struct made_batches {
  hr_loader* loader;
};

static int opened = 0, released = 0;

static int give_made(struct ArrowArrayStream* self, struct ArrowArray* out) {
  struct made_batches* made = self->private_data;
  struct ArrowSchema schema;
  hr_batch* batch = NULL;
  memset(out, 0, sizeof *out);
  OK(hr_loader_next(made->loader, 0, &batch));
  if (batch == NULL) return 0;
  OK(hr_batch_arrow(batch, &schema, out));
  schema.release(&schema);
  hr_batch_free(batch);
  return 0;
}
static int give_made_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  (void)self;
  hr_dataset* dataset = numbers_in_batches(10, 4);
  struct one_batch one = first_batch_of(dataset);
  one.array.release(&one.array);
  *out = one.schema;
  hr_dataset_free(dataset);
  return 0;
}
static void end_made(struct ArrowArrayStream* self) {
  struct made_batches* made = self->private_data;
  hr_loader_free(made->loader);
  free(made);
  self->release = NULL;
}
static hr_status open_made(void* user, struct ArrowArrayStream* stream) {
  struct made_batches* made = malloc(sizeof *made);
  hr_devices* devices = cpus(1);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.epochs = 1;
  OK(hr_loader_open(user, devices, &options, &made->loader));
  hr_devices_free(devices);
  *stream = (struct ArrowArrayStream){give_made_schema, give_made, give_error, end_made, made};
  ++opened;
  return HR_OK;
}
static void count_release(void* user) {
  hr_dataset_free(user);
  ++released;
}

static int64_t sum_of(hr_dataset* dataset) {
  hr_devices* devices = cpus(1);
  hr_loader* loader = NULL;
  hr_batch* batch = NULL;
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.epochs = 1;
  int64_t sum = 0;
  OK(hr_loader_open(dataset, devices, &options, &loader));
  OK(hr_loader_next(loader, 0, &batch));
  while (batch != NULL) {
    hr_tensor values = HR_TENSOR_INIT;
    hr_batch_info info = HR_BATCH_INFO_INIT;
    OK(hr_batch_tensor(batch, "value", &values));
    OK(hr_batch_describe(batch, &info));
    OK(hr_batch_wait(batch));
    for (int64_t i = 0; i < info.examples; ++i) sum += ((const int64_t*)values.data)[i];
    hr_batch_free(batch);
    OK(hr_loader_next(loader, 0, &batch));
  }
  hr_loader_free(loader);
  hr_devices_free(devices);
  return sum;
}

static void test_a_stream(void) {
  hr_source* source = NULL;
  OK(hr_source_arrow_stream(open_made, (hr_user){numbers_in_batches(10, 4), count_release}, NULL, &source));
  hr_source_info info = HR_SOURCE_INFO_INIT;
  OK(hr_source_describe(source, &info));
  CHECK(info.streamed && info.records == HR_UNKNOWN && info.field_count == 1);
  hr_dataset* dataset = dataset_of(source);
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 3}"));
  CHECK(sum_of(dataset) == 45);
  CHECK(sum_of(dataset) == 45);
  CHECK(opened == 2 && released == 0);
  hr_dataset_free(dataset);
  CHECK(released == 1);
}

static hr_status open_nothing(void* user, struct ArrowArrayStream* stream) {
  (void)user, (void)stream;
  return HR_IO;
}

static void test_a_stream_that_does_not_open(void) {
  hr_source* source = NULL;
  released = 0;
  FAILS(HR_IO, "open", hr_source_arrow_stream(open_nothing, (hr_user){NULL, NULL}, NULL, &source));
  FAILS(HR_INVALID_ARGUMENT, "open",
        hr_source_arrow_stream(NULL, (hr_user){numbers_in_batches(10, 4), count_release}, NULL, &source));
  CHECK(source == NULL && released == 1);
}

int main(void) {
  test_there_and_back();
  test_a_stream();
  test_a_stream_that_does_not_open();
  test_refusals();
  return failures == 0 ? 0 : 1;
}
