// A table that another library gives batch after batch, through Arrow's C stream interface, as a source in plain
// C: what a Parquet reader or a database's driver fills in is an ArrowArrayStream like this one. Here its batches
// are those of the data set itself, handed over by hr_batch_arrow(), so that both ways must give the same rows.
//   example_arrow_stream_in_c [DATA]
//
// Prints: ^directly: [1-9][0-9]* rows, checksum [0-9a-f]{16}$
// Prints: ^through Arrow: [1-9][0-9]* rows, checksum [0-9a-f]{16}$
// Prints: ^the same rows$
#include <errno.h>
#include <headrace/headrace.h>
#include <headrace/pipeline/arrow_structs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ends the program with what was wrong and what to do next.
static void want(hr_status status) {
  if (status == HR_OK) return;
  fprintf(stderr, "%s\n", hr_last_error()->what);
  exit(1);
}

static hr_loader* open_loader(const hr_dataset* plan) {
  hr_devices* devices = NULL;
  hr_loader* loader = NULL;
  want(hr_devices_open("cpu:1", &devices));
  want(hr_loader_open(plan, devices, NULL, NULL, &loader));
  hr_devices_free(devices);
  return loader;
}

// What the stream's functions know: the loader whose batches they hand over, and the schema until it is asked for.
typedef struct Table {
  hr_loader* loader;
  struct ArrowSchema schema;
  struct ArrowArray first;  // the batch that the schema came with
} Table;

static int next_batch(hr_loader* loader, struct ArrowSchema* schema, struct ArrowArray* array) {
  hr_batch* batch = NULL;
  memset(array, 0, sizeof *array);  // released: the end
  memset(schema, 0, sizeof *schema);
  if (hr_loader_next(loader, 0, &batch) != HR_OK) return EIO;
  if (batch == NULL) return 0;
  const hr_status status = hr_batch_arrow(batch, schema, array);  // shares the batch's memory
  hr_batch_free(batch);
  return status == HR_OK ? 0 : EIO;
}

static int get_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  Table* table = self->private_data;
  *out = table->schema;
  table->schema.release = NULL;
  return out->release == NULL ? EINVAL : 0;
}

static int get_next(struct ArrowArrayStream* self, struct ArrowArray* out) {
  Table* table = self->private_data;
  if (table->first.release != NULL) {
    *out = table->first;
    table->first.release = NULL;
    return 0;
  }
  struct ArrowSchema unused;
  const int status = next_batch(table->loader, &unused, out);
  if (unused.release != NULL) unused.release(&unused);
  return status;
}

static const char* get_last_error(struct ArrowArrayStream* self) {
  (void)self;
  return hr_last_error()->what;
}

static void release_table(struct ArrowArrayStream* self) {
  Table* table = self->private_data;
  if (table->schema.release != NULL) table->schema.release(&table->schema);
  if (table->first.release != NULL) table->first.release(&table->first);
  hr_loader_free(table->loader);
  free(table);
  self->release = NULL;
}

// Called for the schema, and again by each loader, which reads from the first batch on.
static hr_status open_table(void* user, struct ArrowArrayStream* stream) {
  Table* table = calloc(1, sizeof *table);
  if (table == NULL) return HR_OUT_OF_MEMORY;
  table->loader = open_loader(user);
  *stream = (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_table, table};
  return next_batch(table->loader, &table->schema, &table->first) == 0 ? HR_OK : HR_IO;
}

// Mixes every byte of all rows, in order.
static uint64_t checksum(const hr_dataset* plan, const char* what) {
  hr_loader* loader = open_loader(plan);
  hr_batch* batch = NULL;
  uint64_t hash = 14695981039346656037U;
  int64_t rows = 0;
  for (want(hr_loader_next(loader, 0, &batch)); batch != NULL; want(hr_loader_next(loader, 0, &batch))) {
    hr_tensor images = HR_TENSOR_INIT, labels = HR_TENSOR_INIT;
    hr_batch_info info = HR_BATCH_INFO_INIT;
    want(hr_batch_describe(batch, &info));
    want(hr_batch_tensor(batch, "image", &images));
    want(hr_batch_tensor(batch, "label", &labels));
    want(hr_batch_wait(batch));
    const unsigned char* pixels = images.data;
    for (int64_t i = 0; i < info.examples * 28 * 28; ++i) hash = (hash ^ pixels[i]) * 1099511628211U;
    for (int64_t i = 0; i < info.examples; ++i) {
      hash = (hash ^ (uint64_t)((const int64_t*)labels.data)[i]) * 1099511628211U;
      ++rows;
    }
    hr_batch_free(batch);
  }
  hr_loader_free(loader);
  printf("%s: %" PRId64 " rows, checksum %016" PRIx64 "\n", what, rows, hash);
  return hash;
}

static void free_plan(void* plan) { hr_dataset_free(plan); }

int main(int argc, char** argv) {
  hr_dataset *direct = NULL, *streamed = NULL;
  want(hr_dataset_open(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist", NULL, &direct));
  want(hr_dataset_add(direct, "batch", "{\"global_batch\": 64}", NULL));
  const uint64_t wanted = checksum(direct, "directly");
  const hr_user user = {direct, free_plan};  // freed with the last plan that knows open_table()
  want(hr_dataset_from_arrow_stream(open_table, user, NULL, &streamed));
  want(hr_dataset_add(streamed, "batch", "{\"global_batch\": 64}", NULL));
  const uint64_t found = checksum(streamed, "through Arrow");
  hr_dataset_free(streamed);
  printf(found == wanted ? "the same rows\n" : "other rows\n");
  return found == wanted ? 0 : 1;
}
