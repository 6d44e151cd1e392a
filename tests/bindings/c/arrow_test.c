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

int main(void) {
  test_there_and_back();
  test_refusals();
  return failures == 0 ? 0 : 1;
}
