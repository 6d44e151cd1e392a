/* Plans: where their records come from, their stages, and the program's own code in them. Part of
 * <headrace/headrace.h>. */
#ifndef HEADRACE_C_DATASETS_H_
#define HEADRACE_C_DATASETS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_U8 = 0, HR_I32 = 1, HR_I64 = 2, HR_F16 = 3, HR_BF16 = 4, HR_F32 = 5 }; /* element types */
enum { HR_RAW = 0, HR_IMAGE = 1 }; /* encodings: elements, or the bytes of a JPEG or PNG file */
enum { HR_LAYOUT_UNSAID = 0, HR_CHANNELS_LAST = 1, HR_CHANNELS_FIRST = 2 }; /* where an image's channels are */

#define HR_MAX_RANK 6
#define HR_MAX_FIELDS 64
#define HR_DYNAMIC (-1) /* an extent that differs from record to record */

/* The type and shape of one named field of a record. This struct does not grow. */
typedef struct hr_field {
  const char* name;
  int32_t dtype;
  int32_t encoding;
  int64_t rank; /* 0: a scalar */
  int64_t shape[HR_MAX_RANK];
  int32_t layout; /* of an image of three axes, as the plan says it */
} hr_field;

/* A plan: records, and stages that choose, change and batch them. Each call that changes it adds a stage, or fails
 * and leaves it unchanged; nothing is read until a loader runs it. Loaders, copies and combinations keep the plan
 * as it was when they were made. */
typedef struct hr_dataset hr_dataset;

/* The program's own code and data, which options in JSON name: see hr_parts_create(). */
typedef struct hr_parts hr_parts;

/* Where records come from. Each call makes a plan without stages. `options` is a JSON object and may be null. */

/* Opens a file, a folder or a URL, recognised by its content: "{\"split\": \"test\"}". The member "as" names
 * another opener: "{\"as\": \"tf_records\", \"label_keys\": [\"kind\"]}". Openers and their options are those of
 * sources in plans (pipeline/PLAN.md). If `path` is null, the options name the files: "{\"as\": \"web_dataset\",
 * \"path\": [\"a.tar\", \"b.tar\"]}". */
HR_API hr_status hr_dataset_open(const char* path, const char* options, hr_dataset** dataset);

/* One field of records in memory: `bytes` bytes of elements, back to back. If `owner.release` is null, the bytes
 * are copied; otherwise they must stay in place, unchanged, until it is called. This struct does not grow. */
typedef struct hr_array {
  hr_field field;
  const void* data;
  size_t bytes;
  hr_user owner;
} hr_array;
/* Options: name, classes. */
HR_API hr_status hr_dataset_from_arrays(const hr_array* arrays, size_t count, uint64_t records,
                                        const char* options, hr_dataset** dataset);

/* Receives the fields of one record from a callback, each once. Valid for one call. */
typedef struct hr_record hr_record;
HR_API hr_status hr_record_put(hr_record* record, size_t field, const void* data, size_t bytes);
/* Returns memory for the field. REQUIRES: it is filled before the next call to any function here. */
HR_API hr_status hr_record_allocate(hr_record* record, size_t field, size_t bytes, void** room);

/* Functions that make records, in one of three ways; the others are null. The option "fingerprint" identifies the
 * records: change it with the functions or their data.
 *
 * `make` makes a record by its zero-based number. Several threads call it at once, in any order. REQUIRES: the
 * same number gives the same bytes. Options: name, records, fingerprint, classes.
 *
 * `next` makes one record after another until it sets `*end`. The calling thread calls it at once, to the end,
 * with `user`; the records are kept in memory. Options: name, classes, memory_limit.
 *
 * `open`, `next` and `close` make a stream, possibly without end, that is not kept. Each loader opens it once, at
 * the first record it needs; one engine thread calls `next` with the stream until it sets `*end`, then `close`,
 * which may be null. Options: name, classes, label_count, fingerprint. */
typedef struct hr_record_calls {
  size_t size;
  const hr_field* fields;
  size_t field_count;
  hr_status (*make)(void* user, uint64_t index, hr_record* record);
  hr_status (*open)(void* user, uint64_t first, void** stream);
  hr_status (*next)(void* user_or_stream, hr_record* record, bool* end);
  void (*close)(void* stream);
  hr_user user;
} hr_record_calls;
#define HR_RECORD_CALLS_INIT                                                 \
  {                                                                          \
    sizeof(hr_record_calls), NULL, 0, NULL, NULL, NULL, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_dataset_from_calls(const hr_record_calls* calls, const char* options, hr_dataset** dataset);

/* Arrow's structs, in its own abi.h or in headrace/pipeline/arrow_structs.h. */
struct ArrowArrayStream;

/* Takes all batches of the stream, without a copy, and keeps them while the plan lives. The stream is moved from,
 * also on failure. Options are those of ArrowOptions in C++: name, image_column, label_column, columns,
 * label_type, classes, label_count, memory_limit. */
HR_API hr_status hr_dataset_from_arrow(struct ArrowArrayStream* stream, const char* options, hr_dataset** dataset);
/* Serves batch after batch of a stream, which is not kept: for tables larger than memory. `open` fills in a stream
 * at its first batch; it is called once at once, for the schema, and then by each further loader, on one engine
 * thread. Records are read in order; the names of classes must be given. Options as above. */
HR_API hr_status hr_dataset_from_arrow_stream(hr_status (*open)(void* user, struct ArrowArrayStream* stream),
                                              hr_user user, const char* options, hr_dataset** dataset);

/* Makes the plan that a text describes, and opens its sources: see pipeline/PLAN.md for the format. Options: base,
 * the folder of relative paths; allow_paths, false for untrusted plans, which must not choose the files that this
 * process opens; global_batch. `parts` may be null. */
HR_API hr_status hr_dataset_from_json(const char* json, const char* options, const hr_parts* parts,
                                      hr_dataset** dataset);
/* Returns the plan as JSON, from which C++, C and Python make the same stream. `parts` hold the code and data that
 * JSON can only name; may be null. */
HR_API hr_status hr_dataset_to_json(const hr_dataset* dataset, const hr_parts* parts, char** json);

/* Combines several datasets into one; if all are batched, whole batches. `how` is concatenate, interleave, mix or
 * zip, `options` as for hr_dataset_add(): "{\"weights\": [1, 3]}" to mix, "{\"suffixes\": [\"\", \"_mask\"],
 * \"strict\": false}" to zip. REQUIRES: all are batched or none is. */
HR_API hr_status hr_dataset_combine(const char* how, const char* options, const hr_dataset* const* datasets,
                                    size_t count, hr_dataset** dataset);
/* Returns a copy; the two share their caches. */
HR_API hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy);
HR_API void hr_dataset_free(hr_dataset* dataset);

/* Adds the stage called `stage`, with `options` as JSON: hr_dataset_add(plan, "shuffle", "{\"seed\": 7}", NULL).
 * Null: all defaults. Stages are decode, map, shuffle, shuffle_window, repeat, take, skip, select, shard,
 * without_shard, shard_for_worker, enumerate, filter, cache, batch, padded_batch, ragged_batch, bucket_by_length,
 * unbatch, window and prefetch. Their options, and the operations of map, are those of plans in JSON and of C++
 * (pipeline/PLAN.md, pipeline/PARTS.md). `parts` hold the code that options name; may be null. An error names the
 * place: "shuffle.seed". */
HR_API hr_status hr_dataset_add(hr_dataset* dataset, const char* stage, const char* options,
                                const hr_parts* parts);

/* Parts: code and data by name. hr_dataset_add(plan, "map", "[{\"named\": \"blur\"}, {\"flip\": {}}]", parts) runs
 * the program's operation "blur", hr_dataset_add(plan, "filter", "{\"named\": \"even\"}", parts) its filter
 * "even", and {"named": "my_data"} is the source of a plan in JSON. What a plan uses lives as long as the plan.
 */
HR_API hr_status hr_parts_create(hr_parts** parts);
HR_API void hr_parts_free(hr_parts* parts);

/* One record as the program's operation or filter sees it. Valid for one call. */
typedef struct hr_sample hr_sample;
/* Returns the bytes of a field: elements, or an encoded image's file. `shape` (HR_MAX_RANK entries) and `rank` may
 * be null. */
HR_API hr_status hr_sample_input(const hr_sample* sample, const char* field, const void** data, size_t* bytes,
                                 int64_t* shape, size_t* rank);
/* Reads a raw scalar field of any integer type, in a filter. */
HR_API hr_status hr_sample_integer(const hr_sample* sample, const char* field, int64_t* value);
/* Returns a whole output of an operation, uninitialised. REQUIRES: it is filled before the function returns. */
HR_API hr_status hr_sample_output(hr_sample* sample, const char* field, void** room, size_t* bytes);
/* Returns the record's number in the source and the zero-based pass, in an operation with inputs. */
HR_API hr_status hr_sample_position(const hr_sample* sample, uint64_t* record, uint64_t* pass);
/* Random numbers of one record in one pass, independent of who draws them and when; 0 in a filter. */
HR_API uint32_t hr_random_bits(hr_sample* sample);                  /* uniform over all 2^32 values */
HR_API float hr_random_uniform(hr_sample* sample);                  /* in [0, 1) */
HR_API uint32_t hr_random_below(hr_sample* sample, uint32_t bound); /* in [0, bound); bound > 0 */

/* Adds an operation. `options` name it and say what it reads: "{\"name\": \"split\", \"inputs\": [\"image\"]}".
 * Several threads call the function at once. REQUIRES: it is pure.
 *
 * Options: name; version, part of every fingerprint: change it with the function; inputs, the fields that it
 * reads, "image" if left out: `outputs` then replace fields of their name or are new; each_pass_anew, true if it
 * draws random numbers or depends on the pass; field, in place of the last two: the only output replaces this
 * field and keeps its name, as in user_map() of C++, and the function may draw random numbers. */
HR_API hr_status hr_parts_add_operation(hr_parts* parts, const char* options, const hr_field* outputs,
                                        size_t output_count, hr_status (*function)(void* user, hr_sample* sample),
                                        hr_user user);
/* Adds a filter, which keeps the records for which `keeps` sets `*keep`. Options are those of RecordFilter in C++:
 * name, version, processed (it sees the fields after the preceding stages, not as the source holds them),
 * stall_timeout_seconds, max_failures. Several threads call it at once, once per record. REQUIRES: it is pure. */
HR_API hr_status hr_parts_add_filter(hr_parts* parts, const char* options,
                                     hr_status (*keeps)(void* user, const hr_sample* sample, bool* keep),
                                     hr_user user);
/* Adds the records of a plan that has no stages. */
HR_API hr_status hr_parts_add_source(hr_parts* parts, const char* name, const hr_dataset* dataset);

typedef struct hr_dataset_info {
  size_t size;
  uint64_t records;         /* of one epoch; HR_UNKNOWN for a stream */
  uint64_t steps_per_epoch; /* HR_UNKNOWN for a stream, or before batching */
  uint64_t fingerprint;     /* identifies the stream */
  size_t field_count;       /* of one sample after all operations */
  size_t class_count;
  int64_t global_batch; /* examples over all replicas; 0 before batching */
  bool streamed;
  /* Of the source. Texts belong to the dataset and stay valid until it is freed. */
  bool resident; /* its records are in memory */
  uint64_t label_count;
  const char* name;
  const char* format;   /* the recognised format: "images in folders"; empty if the options named the opener */
  const char* left_out; /* describes files that are not records and columns that are not fields; may be empty */
  const char* reading;  /* in one line how the data were read: format, split, classes, label, what is left out */
} hr_dataset_info;
#define HR_DATASET_INFO_INIT \
  { sizeof(hr_dataset_info), 0, 0, 0, 0, 0, 0, false, false, 0, NULL, NULL, NULL, NULL }
/* Runs the plan's filters, once. */
HR_API hr_status hr_dataset_describe(const hr_dataset* dataset, hr_dataset_info* info);
/* Returned names belong to the dataset and stay valid until it is freed. */
HR_API hr_status hr_dataset_field(const hr_dataset* dataset, size_t index, hr_field* field);
HR_API hr_status hr_dataset_class(const hr_dataset* dataset, size_t index, const char** name);
/* Returns the plan as it will run, one stage per line. `devices` may be null. */
HR_API hr_status hr_dataset_explain(const hr_dataset* dataset, const hr_devices* devices, char** text);

/* Reads the records of the plan's source, whatever its stages, decodes their images, and returns what was found,
 * as JSON: records, examined, bytes (as stored), height and width (min and max of the images), labels (the records
 * of each), labelled, bad and first_bad, warned and first_warned (damaged in a way that changes no pixel),
 * oriented (images whose EXIF data give another orientation), columns. Options: max_examined, evenly spread, 0 for
 * all; max_listed, of first_bad and first_warned. */
HR_API hr_status hr_dataset_inspect(const hr_dataset* dataset, const char* options, char** json);

/* Calls `look` about twenty times a second, from now on, while this thread waits for a pass over all records, so
 * that a program can check for signals. Such passes are a filter's, which the functions here and hr_loader_open()
 * may be the first to need, and those of the stages padded_batch and bucket_by_length and of
 * hr_dataset_inspect(). If `look` returns anything but HR_OK, the pass ends within a second and the function
 * returns that status; a later call restarts the pass. Null: stops the calls. `user` is released when it is
 * replaced or the thread ends. REQUIRES: not called by a callback. */
HR_API hr_status hr_set_scan_poll(hr_status (*look)(void* user), hr_user user);

/* Counts the records that loaders and conversions skip or replace, each once, over all loaders, splits and epochs
 * that it is given to. For a single loader's counts, including records with a warning, see hr_loader_stats(). */
typedef struct hr_tally hr_tally;
HR_API hr_status hr_tally_create(hr_tally** tally);
/* Returns JSON: bad, records (of all sources read), first (the first bad record encountered, or null). */
HR_API hr_status hr_tally_read(const hr_tally* tally, char** json);
HR_API void hr_tally_free(hr_tally* tally);

/* Packs a data set into one record file, for fast reading by position, or with shard_bytes into several in a
 * folder, or into tars as WebDataset reads them; also in a store, "s3://bucket/key". Options are those of
 * ConvertOptions in C++: format ("records" or "webdataset"), max_side, quality, shard_bytes, threads,
 * apply_orientation, split ("all", "train" or "test"), on_error ("fail" or "skip"), max_bad_share, quarantine, and
 * how to read the data (classes_at, train_folder, test_folder, label_count, image_column, label_column, columns,
 * label_type). `tally` counts the omitted records. Returns records, bytes, shards, bad_records and reading as
 * JSON. `options`, `tally` and `json` may be null. */
HR_API hr_status hr_convert(const char* data, const char* to, const char* options, hr_tally* tally, char** json);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_DATASETS_H_ */
