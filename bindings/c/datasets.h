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
 * Loaders, copies and combinations keep the plan as it was when they were made. */
typedef struct hr_dataset hr_dataset;

HR_API hr_status hr_dataset_from(const hr_source* source, hr_dataset** dataset);
HR_API hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy);
HR_API void hr_dataset_free(hr_dataset* dataset);

/* Adds the stage called `stage`, with `options` as a JSON object: hr_dataset_add(plan, "shuffle", "{\"seed\":
 * 7}"). Null: all defaults. Stages are decode, shuffle, shuffle_window, repeat, take, skip, select, shard,
 * without_shard, shard_for_worker, enumerate, filter, cache, batch, padded_batch, ragged_batch, bucket_by_length,
 * unbatch, window, prefetch, and map, whose options are a list of operations. Options and defaults are those of
 * plans in JSON (pipeline/PLAN.md) and of C++, pipeline/dataset.h. An error names the place: "shuffle.seed". */
HR_API hr_status hr_dataset_add(hr_dataset* dataset, const char* stage, const char* options);
/* Adds a chain with operations of the program's own. */
HR_API hr_status hr_dataset_map(hr_dataset* dataset, const hr_operations* chain);
/* Adds a cache whose statistics the program reads. */
HR_API hr_status hr_dataset_cache(hr_dataset* dataset, const hr_cache* cache);

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

/* Combines several datasets into one; if all are batched, whole batches. `how` is concatenate, interleave, mix or
 * zip, `options` as for hr_dataset_add(): "{\"weights\": [1, 3]}" to mix, "{\"suffixes\": [\"\", \"_mask\"],
 * \"strict\": false}" to zip. REQUIRES: all parts are batched or none is. */
HR_API hr_status hr_dataset_combine(const char* how, const char* options, const hr_dataset* const* parts,
                                    size_t count, hr_dataset** dataset);

/* Calls `look` about twenty times a second, from now on, while this thread waits for a pass over all records, so
 * that a program can check for signals. Such passes are a filter's, which the functions below and hr_loader_open()
 * may be the first to need, and those of the stages padded_batch and bucket_by_length and of
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
