/* A batch handed over as Arrow, and taken back as a source. */
#include <headrace/pipeline/arrow_structs.h>

#include "headrace/tests/bindings/c/check.h"

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
static void end_stream(struct ArrowArrayStream* self) {
  struct one_batch* batch = self->private_data;
  if (batch->schema.release != NULL) batch->schema.release(&batch->schema);
  if (batch->array.release != NULL) batch->array.release(&batch->array);
  self->release = NULL;
}

static struct one_batch first_batch_of(hr_dataset* dataset) {
  hr_loader* loader = loader_of(dataset, NULL);
  hr_batch* batch = next_of(loader);
  struct one_batch one;
  OK(hr_batch_arrow(batch, &one.schema, &one.array));
  hr_batch_free(batch);
  hr_loader_free(loader);
  return one;
}

static void test_there_and_back(void) {
  hr_dataset* dataset = numbers_in_batches(10, 4);
  struct one_batch one = first_batch_of(dataset);
  CHECK(strcmp(one.schema.format, "+s") == 0 && strcmp(one.schema.children[0]->name, "value") == 0);
  CHECK(one.array.length == 4 && one.array.n_children == 1);
  struct ArrowArrayStream stream = {give_schema, give_array, give_error, end_stream, &one};
  hr_dataset* table = NULL;
  OK(hr_dataset_from_arrow(&stream, "{\"columns\": [\"number=value\"]}", &table));
  CHECK(stream.release == NULL);
  CHECK(records_of(table) == 4 && about(table).field_count == 1 && strcmp(about(table).name, "arrow") == 0);
  hr_dataset_free(table);
  FAILS(HR_INVALID_ARGUMENT, "released or read already", hr_dataset_from_arrow(&stream, NULL, &table));
  hr_dataset_free(dataset);
}

static void test_refusals(void) {
  static const char* const refused[][2] = {
      {"{\"columns\": [\"valeu\"]}", "did you mean 'value'"},
      {"{\"colunms\": []}", "options of Arrow: there is no option \"colunms\": did you mean 'columns'?"},
      {"{\"label_type\": \"text\"}", "options of Arrow at label_type: \"text\" is not among the choices"}};
  hr_dataset *dataset = numbers_in_batches(10, 4), *table = NULL;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    struct one_batch one = first_batch_of(dataset);
    struct ArrowArrayStream stream = {give_schema, give_array, give_error, end_stream, &one};
    FAILS(HR_INVALID_ARGUMENT, refused[i][1], hr_dataset_from_arrow(&stream, refused[i][0], &table));
    CHECK(table == NULL && stream.release == NULL); /* it was taken nevertheless */
  }
  FAILS(HR_INVALID_ARGUMENT, "stream", hr_dataset_from_arrow(NULL, NULL, &table));
  hr_dataset_free(dataset);
}

/* A program's table of batches that are made as they are asked for. */
struct made_batches {
  hr_loader* loader;
};

static int opened = 0;

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
  made->loader = loader_of(user, NULL);
  *stream = (struct ArrowArrayStream){give_made_schema, give_made, give_error, end_made, made};
  ++opened;
  return HR_OK;
}
static void free_and_count(void* user) {
  hr_dataset_free(user);
  ++released;
}

static int64_t sum_of(hr_dataset* dataset) {
  hr_loader* loader = loader_of(dataset, NULL);
  int64_t sum = 0;
  for (hr_batch* batch = next_of(loader); batch != NULL; batch = next_of(loader)) {
    for (int64_t i = 0; i < info_of(batch).examples; ++i) sum += value_of(batch, "value", (size_t)i);
    hr_batch_free(batch);
  }
  hr_loader_free(loader);
  return sum;
}

static void test_a_stream(void) {
  hr_dataset* dataset = NULL;
  OK(hr_dataset_from_arrow_stream(open_made, (hr_user){numbers_in_batches(10, 4), free_and_count}, NULL,
                                  &dataset));
  CHECK(about(dataset).streamed && records_of(dataset) == HR_UNKNOWN && about(dataset).field_count == 1);
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 3}", NULL));
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
  hr_dataset* dataset = NULL;
  released = 0;
  FAILS(HR_IO, "open", hr_dataset_from_arrow_stream(open_nothing, (hr_user){NULL, NULL}, NULL, &dataset));
  FAILS(HR_INVALID_ARGUMENT, "open",
        hr_dataset_from_arrow_stream(NULL, (hr_user){NULL, count_release}, NULL, &dataset));
  CHECK(dataset == NULL && released == 1);
}

int main(void) {
  test_there_and_back();
  test_a_stream();
  test_a_stream_that_does_not_open();
  test_refusals();
  return end_of_test();
}
