/* Loaders: plans that run. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_LOADERS_H_
#define HEADRACE_C_LOADERS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/datasets.h"
#include "headrace/c/devices.h"
#include "headrace/c/errors.h"
#include "headrace/c/records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A running plan: threads, batch slots and position. */
typedef struct hr_loader hr_loader;
typedef struct hr_batch hr_batch;

enum { HR_CONVERT_AUTO = 0, HR_CONVERT_ON_HOST = 1, HR_CONVERT_ON_DEVICE = 2 };
enum { HR_RESIDENT_AUTO = 0, HR_RESIDENT_NEVER = 1, HR_RESIDENT_ALWAYS = 2 };
enum { HR_EVEN_SHARES_OFF = 0, HR_EVEN_SHARES_REPEAT = 1, HR_EVEN_SHARES_DROP = 2 };
enum { HR_ON_ERROR_FAIL = 0, HR_ON_ERROR_SKIP = 1, HR_ON_ERROR_SUBSTITUTE = 2 };

/* See pipeline/loader.h and pipeline/bad_record.h for details. */
typedef struct hr_loader_options {
  size_t size;
  uint64_t seed; /* for everything random in the plan */
  uint64_t epochs;
  int32_t world_replicas;       /* all that share the stream, in all processes; 0: only this loader's */
  int32_t world_first;          /* zero-based number of this loader's first replica */
  int32_t threads;              /* compute threads; 0: chosen while running */
  int32_t reader_threads;       /* 0: chosen while running */
  int32_t prefetch;             /* batches ahead; -1: the plan's value */
  int32_t convert;              /* where u8 images become f32 */
  int32_t converted;            /* HR_F32 or HR_BF16 */
  int32_t resident;             /* whether devices keep the samples of a run of several epochs */
  const char* start;            /* a state to continue from; null: the beginning */
  double stall_timeout_seconds; /* 0: never */
  uint64_t trace_spans;         /* latest spans kept per thread; 0: no tracing */
  int32_t numa_node;            /* -1: any */
  int32_t core_type;            /* -1: any */
  int32_t on_error;             /* for records that cannot be used */
  int32_t cpu_budget;           /* maximum of compute threads; 0: one per processor */
  double max_bad_share;
  const char* quarantine; /* a file that lists bad records; null: no file is written */
  uint64_t memory_budget_bytes;
  uint64_t pinned_budget_bytes;
  uint64_t resident_budget_bytes;
  uint64_t headspace; /* batches made before the same bytes are handed out repeatedly; 0: off */
  int32_t reader_limit;
  /* Called about twenty times a second by a thread that waits in hr_loader_next(), or in hr_loader_open() for a
   * filter to judge all records; these return any status it returns but HR_OK. May be null. */
  hr_status (*while_waiting)(void* user);
  hr_user user;
  hr_tally* tally;     /* counts records that are skipped or replaced; may be null */
  bool in_order;       /* false: batches are handed out as they become ready, each once and as it is in order */
  int64_t even_shares; /* whether every replica gets equally many examples of each batch */
} hr_loader_options;
#define HR_LOADER_OPTIONS_INIT                                                                                    \
  {                                                                                                               \
    sizeof(hr_loader_options), 0, 1, 0, 0, 0, 0, -1, HR_CONVERT_AUTO, HR_F32, HR_RESIDENT_AUTO, NULL, 120, 0, -1, \
        -1, HR_ON_ERROR_FAIL, 0, 0.01, NULL, 0, 0, 0, 0, 8, NULL, {NULL, NULL}, NULL, true, HR_EVEN_SHARES_OFF    \
  }

/* `options` may be null. */
HR_API hr_status hr_loader_open(const hr_dataset* dataset, const hr_devices* devices,
                                const hr_loader_options* options, hr_loader** loader);
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
  int64_t local_rows;       /* of a replica's tensors */
  uint64_t steps_per_epoch; /* HR_UNKNOWN for a stream */
  size_t field_count;
  int32_t replicas;
  int32_t threads; /* maximum computing at once now */
  bool tuned;      /* the tuning has finished */
} hr_loader_info;
#define HR_LOADER_INFO_INIT \
  { sizeof(hr_loader_info), 0, 0, 0, 0, 0, false }
HR_API hr_status hr_loader_describe(const hr_loader* loader, hr_loader_info* info);
HR_API hr_status hr_loader_field(const hr_loader* loader, size_t index, hr_field* field);

/* Returns the position after the last batch that every replica took, as one line of text. */
HR_API hr_status hr_loader_state(const hr_loader* loader, char** text);
/* Returns the threads' latest spans in the Trace Event Format. REQUIRES: trace_spans was set. */
HR_API hr_status hr_loader_trace(const hr_loader* loader, char** json);

typedef struct hr_stats {
  size_t size;
  uint64_t elapsed_ns;
  uint64_t batches; /* handed out to all replicas */
  uint64_t examples;
  uint64_t bytes;
  uint64_t stall_ns; /* wait in hr_loader_next() of the replica that waited longest; not a device's input stall */
  uint64_t read_ns;  /* summed over threads, like the next two */
  uint64_t decode_ns;
  uint64_t operate_ns;
  uint64_t first_batch_ns;
  double ready_batches; /* mean number of finished batches waiting when one was requested */
  double ready_share;   /* share of batches that were finished when they were requested */
  uint64_t slots;
  uint64_t memory_bytes;
  uint64_t pinned_bytes;
  uint64_t kept_records;
  uint64_t kept_bytes;
  uint64_t cache_hits;
  uint64_t cache_misses;
  uint64_t cache_records;
  uint64_t cache_bytes;
  uint64_t bad_records;
  uint64_t warned_records;
  uint64_t oriented_images;
  uint64_t read_retries;
} hr_stats;
#define HR_STATS_INIT \
  { sizeof(hr_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
HR_API hr_status hr_loader_stats(const hr_loader* loader, hr_stats* stats);
/* Returns all statistics as JSON: those above, "stages", "choices" (the engine's own decisions) and "verdict"
 * (what limits it, and what would help). */
HR_API hr_status hr_loader_stats_json(const hr_loader* loader, char** json);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_LOADERS_H_ */
