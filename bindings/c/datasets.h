/* Plans and their caches. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_DATASETS_H_
#define HEADRACE_C_DATASETS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/devices.h"
#include "headrace/c/errors.h"
#include "headrace/c/operations.h"
#include "headrace/c/records.h"
#include "headrace/c/sources.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_cache hr_cache;

typedef struct hr_cache_stats {
  size_t size;
  uint64_t hits;
  uint64_t misses;
  uint64_t records; /* stored now */
  uint64_t bytes;
  uint64_t refused; /* did not fit the budget */
  uint64_t bad;     /* found damaged; computed again */
} hr_cache_stats;
#define HR_CACHE_STATS_INIT \
  { sizeof(hr_cache_stats), 0, 0, 0, 0, 0, 0 }

/* `budget` is in bytes; 0: no limit. */
HR_API hr_status hr_cache_memory(uint64_t budget, hr_cache** cache);
/* `budget` as above. `segment_bytes` 0: 256 MiB. */
HR_API hr_status hr_cache_disk(const char* folder, uint64_t budget, uint64_t segment_bytes, hr_cache** cache);
HR_API hr_status hr_cache_read_stats(const hr_cache* cache, hr_cache_stats* stats);
/* Returns why the cache stores nothing more; an empty string if all is well. */
HR_API hr_status hr_cache_trouble(const hr_cache* cache, char** text);
HR_API void hr_cache_free(hr_cache* cache);

/* A plan. Each call adds a stage, or fails and leaves the plan unchanged; nothing is read until a loader runs it.
 * Loaders, copies and combinations keep the plan as it was when they were made. pipeline/dataset.h documents the
 * stages. */
typedef struct hr_dataset hr_dataset;

HR_API hr_status hr_dataset_from(const hr_source* source, hr_dataset** dataset);
HR_API hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy);
HR_API void hr_dataset_free(hr_dataset* dataset);

typedef struct hr_decode_options {
  size_t size;
  int64_t height; /* of all images, if known; 0: any */
  int64_t width;
  bool apply_orientation;
} hr_decode_options;
#define HR_DECODE_OPTIONS_INIT \
  { sizeof(hr_decode_options), 0, 0, false }
typedef struct hr_shuffle_options {
  size_t size;
  uint64_t seed;
  bool each_epoch_anew; /* false: the same order every epoch */
  uint64_t window;      /* number of positions shuffled among themselves; 0: the whole epoch */
} hr_shuffle_options;
#define HR_SHUFFLE_OPTIONS_INIT \
  { sizeof(hr_shuffle_options), 0, true, 0 }
typedef struct hr_batch_options {
  size_t size;
  int64_t global; /* examples over all replicas */
  bool drop_remainder;
} hr_batch_options;
#define HR_BATCH_OPTIONS_INIT \
  { sizeof(hr_batch_options), 32, false }

/* How to pad a field whose first extent differs from record to record. This struct does not grow. */
typedef struct hr_pad_field {
  const char* field;
  int64_t length; /* 0: that of the longest record */
  uint64_t value; /* of each byte of padding, 0 to 255 */
} hr_pad_field;
typedef struct hr_padded_batch_options {
  size_t size;
  int64_t global;
  bool drop_remainder;
  const hr_pad_field* pad; /* null: pads every such field to its longest record, with zeros */
  size_t pad_count;
} hr_padded_batch_options;
#define HR_PADDED_BATCH_OPTIONS_INIT \
  { sizeof(hr_padded_batch_options), 32, false, NULL, 0 }
/* A field whose first extent differs from sample to sample. This struct does not grow. */
typedef struct hr_ragged_field {
  const char* field;
  int64_t max_length; /* 0: that of the source's longest record */
} hr_ragged_field;
typedef struct hr_ragged_batch_options {
  size_t size;
  int64_t global;
  bool drop_remainder;
  const hr_ragged_field* fields; /* null: every such field */
  size_t field_count;
} hr_ragged_batch_options;
#define HR_RAGGED_BATCH_OPTIONS_INIT \
  { sizeof(hr_ragged_batch_options), 32, false, NULL, 0 }
typedef struct hr_bucket_options {
  size_t size;
  const char* field;         /* whose length counts */
  const int64_t* boundaries; /* the greatest length of each bucket but the last, ascending */
  size_t boundary_count;
  const int64_t* batch_sizes; /* one per bucket, or one for all */
  size_t batch_size_count;
  int64_t max_length; /* of the last bucket; 0: that of the longest record */
  bool drop_remainder;
  const hr_pad_field* pad; /* a length of 0: the bucket's; null: pads every field that varies, with zeros */
  size_t pad_count;
} hr_bucket_options;
#define HR_BUCKET_OPTIONS_INIT \
  { sizeof(hr_bucket_options), NULL, NULL, 0, NULL, 0, 0, false, NULL, 0 }

enum { HR_SHARD_AUTO = 0, HR_SHARD_BY_FILE = 1, HR_SHARD_BY_ELEMENT = 2 };

/* `options` may be null. */
HR_API hr_status hr_dataset_decode(hr_dataset* dataset, const hr_decode_options* options);
HR_API hr_status hr_dataset_map(hr_dataset* dataset, const hr_operations* chain);
HR_API hr_status hr_dataset_shuffle(hr_dataset* dataset, const hr_shuffle_options* options); /* may be null */
HR_API hr_status hr_dataset_repeat(hr_dataset* dataset, int64_t times);
HR_API hr_status hr_dataset_take(hr_dataset* dataset, uint64_t count);
HR_API hr_status hr_dataset_skip(hr_dataset* dataset, uint64_t count);
/* Chooses the records with these zero-based numbers, in this order; after hr_dataset_batch(), batches. A number
 * may be repeated. One that is out of range is an error when the plan is first counted or opened. */
HR_API hr_status hr_dataset_select(hr_dataset* dataset, const uint64_t* numbers, size_t count);
HR_API hr_status hr_dataset_shard(hr_dataset* dataset, uint64_t count, uint64_t index);
HR_API hr_status hr_dataset_without_shard(hr_dataset* dataset, uint64_t count, uint64_t index);
HR_API hr_status hr_dataset_shard_for_worker(hr_dataset* dataset, uint64_t count, uint64_t index, int32_t by);
/* Adds the field, i64, with the position at which the stage stands. `field` null: "index". */
HR_API hr_status hr_dataset_enumerate(hr_dataset* dataset, const char* field);
HR_API hr_status hr_dataset_unbatch(hr_dataset* dataset);
HR_API hr_status hr_dataset_cache(hr_dataset* dataset, const hr_cache* cache);
HR_API hr_status hr_dataset_batch(hr_dataset* dataset, const hr_batch_options* options); /* may be null */
HR_API hr_status hr_dataset_padded_batch(hr_dataset* dataset,
                                         const hr_padded_batch_options* options); /* may be null */
/* A batch then has, of each such field, the entries of all rows, and in `<name>_offsets`, int64, where each row
 * begins: rows + 1 numbers, from 0. */
HR_API hr_status hr_dataset_ragged_batch(hr_dataset* dataset,
                                         const hr_ragged_batch_options* options); /* may be null */
/* Batches of one loader have several shapes then. */
HR_API hr_status hr_dataset_bucket_by_length(hr_dataset* dataset, const hr_bucket_options* options);
HR_API hr_status hr_dataset_prefetch(hr_dataset* dataset, int32_t batches);

/* The fields of one example, as a filter sees them. Valid for one call. */
typedef struct hr_example hr_example;
HR_API hr_status hr_example_bytes(const hr_example* example, const char* field, const void** data, size_t* bytes);
HR_API hr_status hr_example_shape(const hr_example* example, const char* field, int64_t* shape, size_t* rank);
/* Reads a raw scalar field of any integer type. */
HR_API hr_status hr_example_integer(const hr_example* example, const char* field, int64_t* value);

/* Keeps the records for which `keeps` sets `*keep`. Several threads call it at once, once per record.
 * REQUIRES: `keeps` is pure. */
typedef struct hr_filter hr_filter;
typedef struct hr_filter_options {
  size_t size;
  const char* name;
  uint32_t version; /* part of every fingerprint: change it with the function */
  bool processed;   /* sees the fields after the preceding stages, not as the source holds them */
  double stall_timeout_seconds;
  uint64_t max_failures;
  hr_status (*keeps)(void* user, const hr_example* example, bool* keep);
  hr_user user;
} hr_filter_options;
#define HR_FILTER_OPTIONS_INIT                                                  \
  {                                                                             \
    sizeof(hr_filter_options), NULL, 1, false, 120, 65536, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_filter_create(const hr_filter_options* options, hr_filter** filter);
HR_API void hr_filter_free(hr_filter* filter);
HR_API hr_status hr_dataset_filter(hr_dataset* dataset, const hr_filter* filter);
/* Keeps the records whose label is in `labels`. */
HR_API hr_status hr_dataset_filter_labels(hr_dataset* dataset, const int64_t* labels, size_t count);

/* Combines several datasets into one; if all are batched, whole batches. REQUIRES: all parts are batched
 * or none is; also for the next three. */
HR_API hr_status hr_dataset_concatenate(const hr_dataset* const* parts, size_t count, hr_dataset** dataset);
/* Takes `block` records, or batches, from each part in turn. */
HR_API hr_status hr_dataset_interleave(const hr_dataset* const* parts, size_t count, uint64_t block,
                                       hr_dataset** dataset);
typedef struct hr_mix_options {
  size_t size;
  const double* weights; /* one per part; null: proportional to the parts' numbers of records */
  uint64_t seed;
  bool until_all_seen; /* restarts smaller parts until every part was seen in full; false: ends with the first part
                        */
} hr_mix_options;
#define HR_MIX_OPTIONS_INIT \
  { sizeof(hr_mix_options), NULL, 0, false }
/* `options` may be null. */
HR_API hr_status hr_dataset_mix(const hr_dataset* const* parts, size_t count, const hr_mix_options* options,
                                hr_dataset** dataset);
/* Gives record i the fields of every part's record i, or batch i the rows of every part's batch i, equally many.
 * `suffixes`: one per part, for duplicate names; may be null. `strict`: the parts must be equally long, and images
 * of files that stand side by side named alike; false: pairs by position alone and ends with the shortest. */
HR_API hr_status hr_dataset_zip(const hr_dataset* const* parts, size_t count, const char* const* suffixes,
                                bool strict, hr_dataset** dataset);

/* Calls `look` about twenty times a second, from now on, while this thread waits for a pass over all records, so
 * that a program can check for signals. Such passes are a filter's, which the functions below and hr_loader_open()
 * may be the first to need, and those of hr_dataset_padded_batch(), hr_dataset_bucket_by_length() and
 * hr_source_inspect(). If `look` returns anything but HR_OK, the pass ends within a second and the function
 * returns that status; a later call restarts the pass. Null: stops the calls. `user` is released when it is
 * replaced or the thread ends. REQUIRES: not called by a callback. */
HR_API hr_status hr_set_scan_poll(hr_status (*look)(void* user), hr_user user);

typedef struct hr_dataset_info {
  size_t size;
  uint64_t records;         /* of one epoch; HR_UNKNOWN for a stream */
  uint64_t steps_per_epoch; /* HR_UNKNOWN for a stream, or before batching */
  uint64_t fingerprint;     /* identifies the stream */
  size_t field_count;       /* of one sample after all operations */
  size_t class_count;
  bool streamed;
  int64_t global_batch; /* examples over all replicas; 0 before batching */
} hr_dataset_info;
#define HR_DATASET_INFO_INIT \
  { sizeof(hr_dataset_info), 0, 0, 0, 0, 0, false, 0 }
/* Runs the plan's filters, once. */
HR_API hr_status hr_dataset_describe(const hr_dataset* dataset, hr_dataset_info* info);
/* Returned names belong to the dataset and stay valid until it is freed. */
HR_API hr_status hr_dataset_field(const hr_dataset* dataset, size_t index, hr_field* field);
HR_API hr_status hr_dataset_class(const hr_dataset* dataset, size_t index, const char** name);
/* Returns the plan as it will run, one stage per line. `devices` may be null. */
HR_API hr_status hr_dataset_explain(const hr_dataset* dataset, const hr_devices* devices, char** text);

/* Names data that a plan's text cannot hold: arrays, generators, streams. This struct does not grow. */
typedef struct hr_named_source {
  const char* name;
  const hr_source* source;
} hr_named_source;

/* The code and data that a plan's text cannot hold, and what the plan may open. */
typedef struct hr_plan_options {
  size_t size;
  const hr_named_source* sources;
  size_t source_count;
  const hr_operations* operations; /* user maps and operations, by name; may be null */
  const hr_filter* const* filters; /* by name */
  size_t filter_count;
  const char* base;  /* the folder of relative paths; null: the process's working folder */
  bool refuse_paths; /* for untrusted plans, which must not choose the files that this process opens */
} hr_plan_options;
#define HR_PLAN_OPTIONS_INIT \
  { sizeof(hr_plan_options), NULL, 0, NULL, NULL, 0, NULL, false }
/* Returns the plan as JSON, from which C++, C and Python make the same stream; see pipeline/PLAN.md for the
 * format. `options` may be null, also in hr_dataset_from_json(). */
HR_API hr_status hr_dataset_to_json(const hr_dataset* dataset, const hr_plan_options* options, char** json);
/* Opens the plan's sources. */
HR_API hr_status hr_dataset_from_json(const char* json, const hr_plan_options* options, hr_dataset** dataset);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_DATASETS_H_ */
