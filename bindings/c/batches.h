/* Batches, their tensors, and the digest that identifies a stream. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_BATCHES_H_
#define HEADRACE_C_BATCHES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/errors.h"
#include "headrace/c/loaders.h"
#include "headrace/c/records.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Identifies a stream by a SHA-256 of every global batch, which is the same for any number of replicas, threads
 * and processes, and from C++, C and Python. Used by one thread at a time. */
typedef struct hr_digest hr_digest;

typedef struct hr_batch_digest {
  size_t size;
  uint64_t epoch;
  uint64_t step;
  int64_t examples;
  char sha256[72]; /* 64 hexadecimal digits and a terminating zero */
} hr_batch_digest;
#define HR_BATCH_DIGEST_INIT                \
  {                                         \
    sizeof(hr_batch_digest), 0, 0, 0, { 0 } \
  }

HR_API hr_status hr_digest_create(const hr_loader* loader, hr_digest** digest);
/* Takes and digests the next batch of every replica of the loader. Sets `*end` at the end of the stream, when
 * nothing is digested. `batch` may be null. */
HR_API hr_status hr_digest_next(hr_digest* digest, hr_loader* loader, hr_batch_digest* batch, bool* end);
/* Returns the SHA-256 over the batches' digests so far. */
HR_API hr_status hr_digest_finish(hr_digest* digest, char** sha256);
HR_API void hr_digest_free(hr_digest* digest);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_BATCHES_H_ */
