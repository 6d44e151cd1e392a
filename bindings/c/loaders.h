/* Running plans, their batches and tensors. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_LOADERS_H_
#define HEADRACE_C_LOADERS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/base.h"
#include "headrace/c/datasets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process among those that a launcher started together, each with its share of one stream. */
typedef struct hr_worker {
  size_t size;
  int32_t rank;
  int32_t workers;       /* 1: this process runs alone */
  int32_t local_rank;    /* among the processes of this host; -1 if the launcher does not say */
  int32_t local_workers; /* processes of this host; -1 if the launcher does not say */
} hr_worker;
#define HR_WORKER_INIT \
  { sizeof(hr_worker), 0, 1, -1, -1 }

/* Reads TF_CONFIG and the variables of torchrun, MPI launchers, Slurm and Kubernetes; opens nothing. Fails with
 * the name of the variable that is missing or wrong. */
HR_API hr_status hr_worker_describe(hr_worker* worker);

/* A running plan: threads, batch slots and position. */
typedef struct hr_loader hr_loader;
typedef struct hr_batch hr_batch;

/* What a loader takes that JSON cannot hold. */
typedef struct hr_loader_calls {
  size_t size;
  /* Called about twenty times a second by a thread that waits in hr_loader_next(), or in hr_loader_open() for a
   * filter to judge all records; these return any status it returns but HR_OK. May be null. */
  hr_status (*while_waiting)(void* user);
  hr_user user;
  hr_tally* tally; /* counts records that are skipped or replaced; may be null */
  /* The loader serves this worker's replicas and, of an indexed source, reads their records alone, in place of the
   * options world_replicas and world_first. REQUIRES: every worker has equally many devices. May be null. */
  const hr_worker* worker;
} hr_loader_calls;
#define HR_LOADER_CALLS_INIT \
  { sizeof(hr_loader_calls), NULL, {NULL, NULL}, NULL, NULL }

/* Opens a loader. `options` is a JSON object: "{\"epochs\": 3, \"seed\": 7}". pipeline/PARTS.md has their names,
 * defaults and explanations. `options` and `calls` may be null. */
HR_API hr_status hr_loader_open(const hr_dataset* dataset, const hr_devices* devices, const char* options,
                                const hr_loader_calls* calls, hr_loader** loader);
/* Returns the replica's share of the next batch, or null at the end of the last epoch. Blocks until it is
 * assembled; GPU work may still be pending, see hr_batch_use_in(). Fails with the error of the batch that it would
 * have returned. */
HR_API hr_status hr_loader_next(hr_loader* loader, int32_t replica, hr_batch** batch);
/* Wakes every waiting hr_loader_next(), which then fails with HR_CANCELLED. */
HR_API hr_status hr_loader_stop(hr_loader* loader);
/* Ends the loader's threads. Batches still held stay valid. */
HR_API void hr_loader_free(hr_loader* loader);

typedef struct hr_loader_info {
  size_t size;
  int64_t local_rows; /* of a replica's tensors */
  uint64_t
      steps_per_epoch; /* HR_UNKNOWN for a stream, and for shards that are not indexed before an epoch has ended */
  int32_t replicas;
  int32_t threads; /* maximum computing at once now */
  bool tuned;      /* the tuning has finished */
} hr_loader_info;
#define HR_LOADER_INFO_INIT \
  { sizeof(hr_loader_info), 0, 0, 0, 0, false }
HR_API hr_status hr_loader_describe(const hr_loader* loader, hr_loader_info* info);

/* Returns the position after the last batch that every replica took, as one line of text. */
HR_API hr_status hr_loader_state(const hr_loader* loader, char** text);
/* Returns the threads' latest spans in the Trace Event Format. REQUIRES: the option trace_spans was set. */
HR_API hr_status hr_loader_trace(const hr_loader* loader, char** json);
/* Returns statistics as JSON: counts and times named as in LoaderStats of C++ (pipeline/stats.h), those of caches
 * as cache_hits ... cache_trouble, "stages", "choices" (the engine's own decisions) and "verdict" (what limits it,
 * and what would help). */
HR_API hr_status hr_loader_stats(const hr_loader* loader, char** json);
/* Takes up to `max_batches` batches (0: all that are left) from every replica, which identifies the stream: each
 * has a SHA-256 that is the same for any number of replicas, threads and processes, and from C++, C and Python.
 * Returns JSON: "batches", each with epoch, step, examples and sha256; "sha256" over the batches of this call,
 * null if the loader's option in_order is false; "end", whether the stream has ended. */
HR_API hr_status hr_loader_digest(hr_loader* loader, uint64_t max_batches, char** json);

enum { HR_DEVICE_CPU = 1, HR_DEVICE_CUDA = 2, HR_DEVICE_CUDA_HOST = 3 }; /* DLPack's values */

typedef struct hr_batch_info {
  size_t size;
  uint64_t epoch;
  uint64_t step;           /* within the epoch */
  uint64_t sequence;       /* over all epochs */
  int64_t global_examples; /* real examples, over all replicas */
  int64_t first_row;       /* number of real examples in the replicas before this one */
  int64_t examples;        /* real examples of this replica: the leading rows of every tensor */
  int64_t rows;            /* of every tensor */
  size_t tensor_count;
  size_t bad_count; /* records of the global batch that could not be used */
  int32_t device_type;
  int32_t device_id;
  bool last_of_epoch;
  bool writable;   /* whether the holder may write to the tensors */
  int64_t repeats; /* how many of `examples`, the last ones, repeat others: see even_shares of the loader */
} hr_batch_info;
#define HR_BATCH_INFO_INIT \
  { sizeof(hr_batch_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, 0 }

typedef struct hr_tensor {
  size_t size;
  const char* name;
  void* data; /* rows one after another, in the memory of the batch's device */
  size_t bytes;
  int32_t dtype;
  int32_t rank;
  int64_t shape[HR_MAX_RANK]; /* rows first, padding included */
} hr_tensor;
#define HR_TENSOR_INIT                            \
  {                                               \
    sizeof(hr_tensor), NULL, NULL, 0, 0, 0, { 0 } \
  }

/* A record that was skipped or replaced. Strings belong to the batch. */
typedef struct hr_bad_record {
  size_t size;
  hr_status code;
  bool substituted;
  uint64_t substitute; /* the record used in its place, if `substituted` */
  const char* source;
  const char* name;
  const char* operation;
  const char* cause;
  uint64_t record;
  uint64_t offset;
  int64_t row; /* its actual or intended row in the global batch */
} hr_bad_record;
#define HR_BAD_RECORD_INIT \
  { sizeof(hr_bad_record), 0, false, 0, NULL, NULL, NULL, NULL, 0, 0, 0 }

HR_API hr_status hr_batch_describe(const hr_batch* batch, hr_batch_info* info);
HR_API hr_status hr_batch_tensor(const hr_batch* batch, const char* field, hr_tensor* tensor);
HR_API hr_status hr_batch_tensor_at(const hr_batch* batch, size_t index, hr_tensor* tensor);
/* Returns the source's record number of each real example. */
HR_API hr_status hr_batch_records(const hr_batch* batch, const uint64_t** records, size_t* count);
HR_API hr_status hr_batch_bad_record(const hr_batch* batch, size_t index, hr_bad_record* bad);

/* Blocks the host until the tensors may be read. */
HR_API hr_status hr_batch_wait(const hr_batch* batch);
HR_API hr_status hr_batch_is_ready(const hr_batch* batch, bool* ready);
/* Makes work submitted to `stream` from now on wait for the batch; the host does not wait. The batch's memory is
 * refilled only after the work submitted to `stream` before the batch, and every tensor exported from it, is
 * freed. `stream` is a cudaStream_t as a number, 0 the default stream. On the CPU the host waits. REQUIRES: the
 * stream lives until then. */
HR_API hr_status hr_batch_use_in(const hr_batch* batch, uintptr_t stream);
/* Returns the slot to the loader, unless exported tensors still share it. */
HR_API void hr_batch_free(hr_batch* batch);

struct DLManagedTensor;
struct DLManagedTensorVersioned;

typedef struct hr_dlpack_options {
  size_t size;
  bool has_stream;     /* `stream` is the consumer's stream, as for hr_batch_use_in() */
  bool unsynchronized; /* if there is no stream: nobody waits; false: the host waits */
  bool padding;        /* all rows; false: only the real examples */
  bool read_only;
  uintptr_t stream;
} hr_dlpack_options;
#define HR_DLPACK_OPTIONS_INIT \
  { sizeof(hr_dlpack_options), false, false, false, false, 0 }
/* Returns the field as an owned DLPack 1.x tensor (the legacy call: pre-1.0). It points to the batch's memory and
 * shares it until its deleter is called. `options` may be null. */
HR_API hr_status hr_batch_dlpack(const hr_batch* batch, const char* field, const hr_dlpack_options* options,
                                 struct DLManagedTensorVersioned** tensor);
HR_API hr_status hr_batch_legacy_dlpack(const hr_batch* batch, const char* field, const hr_dlpack_options* options,
                                        struct DLManagedTensor** tensor);

struct ArrowArray;
struct ArrowSchema;

/* Exports the real examples of a batch in the host's memory as an Arrow struct of its fields, which points to the
 * batch's memory and shares it until it is released. Waits until the batch is ready. */
HR_API hr_status hr_batch_arrow(const hr_batch* batch, struct ArrowSchema* schema, struct ArrowArray* array);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_LOADERS_H_ */
