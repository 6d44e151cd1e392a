/* Headrace from C: plans, loaders and batches behind opaque handles. README.md beside it begins with ten lines.
 *
 * Status. Every function that can fail returns an hr_status: HR_OK, or what went wrong, and hr_last_error() says
 * it in the words of the C++ exceptions. A null pointer is an error unless said otherwise here; outputs are
 * written only where a function succeeds. No exception leaves the library.
 *
 * Ownership. What `hr_<thing>_free` frees is the caller's; null is freed in peace. Handles may be freed in any
 * order: each keeps what it needs of others, so a batch may outlive its loader, and a loader its dataset and
 * devices. Strings that are returned as char** are freed with hr_string_free(); a const char* belongs to the
 * handle it was asked of.
 *
 * Structs. One whose first member is `size` is initialised by its macro HR_..._INIT, which sets the size and the
 * defaults; later versions add members at the end. Pointers to options may be null where said: all defaults.
 *
 * Threads. One replica's batches are taken by one thread at a time. hr_dataset and hr_operations are changed by
 * one thread at a time. Everything else may be called by any thread. A loader does not survive fork(): open it
 * afterwards.
 */
#ifndef HEADRACE_HEADRACE_H_
#define HEADRACE_HEADRACE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of this header; it grows when a symbol or a struct is added. A program runs with any library whose
 * hr_abi_version() is not smaller. */
#define HR_ABI_VERSION 2

#if defined(__GNUC__)
#define HR_API __attribute__((visibility("default")))
#else
#define HR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

HR_API uint32_t hr_abi_version(void);
HR_API const char* hr_version(void); /* "0.1.0" */

/* ---- Errors ----------------------------------------------------------------------------------------------------
 */

typedef int32_t hr_status;
enum {
  HR_OK = 0,
  HR_INVALID_ARGUMENT = 1, /* the caller's configuration or argument is wrong */
  HR_NOT_FOUND = 2,        /* a path, device, name or record does not exist */
  HR_UNSUPPORTED = 3,      /* understood, but this build or device cannot do it */
  HR_DATA_CORRUPT = 4,     /* bytes that do not mean what their format says they mean */
  HR_IO = 5,               /* the operating system refused or a read came short */
  HR_DEVICE = 6,           /* a device or its driver failed */
  HR_OUT_OF_MEMORY = 7,    /* an allocation or a budget was exhausted */
  HR_CANCELLED = 8,        /* stopped on request */
  HR_TIMEOUT = 9,          /* a watchdog ran out; the message names who was waited for */
  HR_INTERNAL = 10         /* a broken invariant of Headrace itself */
};
#define HR_UNKNOWN UINT64_MAX

typedef struct hr_error {
  size_t size;
  hr_status code;
  const char* kind;    /* "ConfigError", "DataError", "DeviceError" or "Error"; empty: nothing has failed yet */
  const char* message; /* what was wrong and where */
  const char* hint;    /* what to do next; may be empty */
  const char* what;    /* "message (hint)" */
  const char* source;  /* of a DataError: a path, or a name for data in memory; else empty */
  uint64_t record;     /* its number; HR_UNKNOWN where it is not known */
  uint64_t offset;     /* of the byte at fault; HR_UNKNOWN where it is not known */
  const char* device;  /* of a DeviceError, else empty */
} hr_error;

/* What failed last in this thread. Never null; valid until the next call that fails in this thread. */
HR_API const hr_error* hr_last_error(void);
/* "ok", "invalid_argument" ... */
HR_API const char* hr_status_name(hr_status status);

/* For callbacks: `return hr_fail(HR_DATA_CORRUPT, "no such row", NULL);` is the error that the engine deals with
 * and that the caller of hr_loader_next() may see. HR_DATA_CORRUPT, HR_NOT_FOUND and HR_IO are of the record; a
 * callback may also return a status alone. Returns `status`; `hint` may be null. */
HR_API hr_status hr_fail(hr_status status, const char* message, const char* hint);

HR_API void hr_string_free(char* text);

/* What a callback is given as `user`. `release` (may be null) is called once, by any thread, when nothing can call
 * the callback any more: the plans, loaders and batches that know it are gone, or the call that it was given to
 * failed. */
typedef struct hr_user {
  void* data;
  void (*release)(void* data);
} hr_user;

/* ---- Fields ----------------------------------------------------------------------------------------------------
 */

enum { HR_U8 = 0, HR_I32 = 1, HR_I64 = 2, HR_F16 = 3, HR_BF16 = 4, HR_F32 = 5 }; /* element types */
enum { HR_RAW = 0, HR_IMAGE = 1 }; /* encodings: elements, or the bytes of a JPEG or PNG file */

#define HR_MAX_RANK 6
#define HR_MAX_FIELDS 4
#define HR_DYNAMIC (-1) /* an extent that differs from record to record */

/* What one named field of a record holds. This struct does not grow. */
typedef struct hr_field {
  const char* name;
  int32_t dtype;
  int32_t encoding;
  int64_t rank; /* 0: a scalar */
  int64_t shape[HR_MAX_RANK];
} hr_field;

/* ---- Bad records -----------------------------------------------------------------------------------------------
 */

/* A record that cannot be used, or that was used though its file is damaged. Strings belong to the handle it was
 * asked of. */
typedef struct hr_bad_record {
  size_t size;
  hr_status code;
  bool substituted;
  uint64_t substitute; /* the record that stands in its place, where one does */
  const char* source;
  const char* name;
  const char* operation;
  const char* cause;
  uint64_t record;
  uint64_t offset;
  int64_t row; /* where it stands, or would, in the global batch */
} hr_bad_record;
#define HR_BAD_RECORD_INIT \
  { sizeof(hr_bad_record), 0, false, 0, NULL, NULL, NULL, NULL, 0, 0, 0 }

/* Counts the records that loaders and conversions skip or replace, each once, over all that it was given to:
 * several loaders, splits and epochs. What a single loader has met, records with a warning included, is in
 * hr_stats. */
typedef struct hr_tally hr_tally;

typedef struct hr_tally_count {
  size_t size;
  uint64_t bad;
  uint64_t records; /* of all sources that were read */
} hr_tally_count;
#define HR_TALLY_COUNT_INIT \
  { sizeof(hr_tally_count), 0, 0 }

HR_API hr_status hr_tally_create(hr_tally** tally);
HR_API hr_status hr_tally_read(const hr_tally* tally, hr_tally_count* count);
/* The bad record that was met first; HR_NOT_FOUND where there was none. */
HR_API hr_status hr_tally_first(const hr_tally* tally, hr_bad_record* first);
HR_API void hr_tally_free(hr_tally* tally);

/* ---- Devices ---------------------------------------------------------------------------------------------------
 */

typedef struct hr_devices hr_devices;

/* "auto", "cpu", "cpu:4", "cuda", "cuda:0,2", "cuda:0x4": one device a replica. */
HR_API hr_status hr_devices_open(const char* spec, hr_devices** devices);
HR_API hr_status hr_devices_count(const hr_devices* devices, int32_t* count);
HR_API hr_status hr_devices_name(const hr_devices* devices, int32_t replica, const char** name); /* "cuda:1" */
HR_API void hr_devices_free(hr_devices* devices);

/* ---- Sources ---------------------------------------------------------------------------------------------------
 */

typedef struct hr_source hr_source;

enum { HR_TRAIN = 0, HR_TEST = 1 };

enum {
  HR_FORMAT_AUTO = 0, /* recognised by content: all but the last two */
  HR_FORMAT_IDX = 1,  /* a folder with MNIST's four files */
  HR_FORMAT_CIFAR = 2,
  HR_FORMAT_IMAGE_FOLDER = 3,
  HR_FORMAT_IMAGE_ARCHIVE = 4,
  HR_FORMAT_WEB_DATASET = 5, /* one archive, several, or a folder of them */
  HR_FORMAT_CSV = 6,
  HR_FORMAT_TF_RECORDS = 7, /* one file, several, or a folder of them */
  HR_FORMAT_NUMPY = 8,
  HR_FORMAT_RECORD_FILE = 9,
  HR_FORMAT_IDX_FILES = 10, /* two paths: images, labels */
  HR_FORMAT_WEB_STREAM = 11 /* a tar through a pipe, for one loader */
};

/* A member that the format has no use for is an error where it is set. */
typedef struct hr_open_options {
  size_t size;
  int32_t format;
  int32_t split;
  const char* classes_at; /* of images in folders: which folder names the class; see LayoutOptions in C++ */
  const char* train_folder;
  const char* test_folder;
  uint64_t label_count;       /* of formats that do not say how many classes there are */
  uint64_t memory_limit;      /* of what is unpacked into memory; 0: 4 GiB */
  const char* const* classes; /* names of classes, of formats that have none */
  size_t class_count;
  const char* path_column;       /* of CSV; null: "path" */
  const char* label_column;      /* of CSV; null: "label" */
  const char* const* image_keys; /* of TFRecords; null: "image/encoded", "image" */
  size_t image_key_count;
  const char* const* label_keys; /* of TFRecords; null: "image/class/label", "label" */
  size_t label_key_count;
  uint64_t fingerprint;     /* of a web stream: identity of its data */
  uint64_t max_image_bytes; /* of a web stream; 0: 1 GiB */
} hr_open_options;
#define HR_OPEN_OPTIONS_INIT                                                                                 \
  {                                                                                                          \
    sizeof(hr_open_options), HR_FORMAT_AUTO, HR_TRAIN, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, 0, \
        NULL, 0, 0, 0                                                                                        \
  }

/* `options` may be null. */
HR_API hr_status hr_source_open(const char* path, const hr_open_options* options, hr_source** source);
HR_API hr_status hr_source_open_all(const char* const* paths, size_t count, const hr_open_options* options,
                                    hr_source** source);

/* One field of records in memory: `bytes` of elements, back to back. Where `owner.release` is null the bytes are
 * copied; else they stay where they are, unchanged, until it is called. This struct does not grow. */
typedef struct hr_array {
  hr_field field;
  const void* data;
  size_t bytes;
  hr_user owner;
} hr_array;

typedef struct hr_memory_options {
  size_t size;
  const char* name; /* null: "memory" */
  uint64_t records;
  const hr_array* arrays;
  size_t array_count;
  const char* const* classes;
  size_t class_count;
} hr_memory_options;
#define HR_MEMORY_OPTIONS_INIT \
  { sizeof(hr_memory_options), NULL, 0, NULL, 0, NULL, 0 }
HR_API hr_status hr_source_in_memory(const hr_memory_options* options, hr_source** source);

/* Where a callback puts the fields of one record, each once. Lives for one call. */
typedef struct hr_record hr_record;
HR_API hr_status hr_record_put(hr_record* record, size_t field, const void* data, size_t bytes);
/* Room to be filled before the next call of anything here. */
HR_API hr_status hr_record_allocate(hr_record* record, size_t field, size_t bytes, void** room);

/* Records made by a function of their number. Several threads call it at once, in any order; the same number must
 * give the same bytes. */
typedef struct hr_generator_options {
  size_t size;
  const char* name; /* null: "generator" */
  const hr_field* fields;
  size_t field_count;
  uint64_t records;
  uint64_t fingerprint; /* identity of what it makes: change it with the function or its data */
  const char* const* classes;
  size_t class_count;
  hr_status (*make)(void* user, uint64_t index, hr_record* record);
  hr_user user;
} hr_generator_options;
#define HR_GENERATOR_OPTIONS_INIT                                                    \
  {                                                                                  \
    sizeof(hr_generator_options), NULL, NULL, 0, 0, 0, NULL, 0, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_source_generator(const hr_generator_options* options, hr_source** source);

/* Records that a function gives one after another until it sets `*end`: called to the end at once, by this thread.
 */
typedef struct hr_pull_options {
  size_t size;
  const char* name; /* null: "pulled" */
  const hr_field* fields;
  size_t field_count;
  const char* const* classes;
  size_t class_count;
  uint64_t memory_limit; /* 0: 4 GiB */
  hr_status (*next)(void* user, hr_record* record, bool* end);
  hr_user user;
} hr_pull_options;
#define HR_PULL_OPTIONS_INIT                                                 \
  {                                                                          \
    sizeof(hr_pull_options), NULL, NULL, 0, NULL, 0, 0, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_source_pulled(const hr_pull_options* options, hr_source** source);

/* Records that come one after another, perhaps without end, and are not kept. Each loader opens it once, at the
 * first record it needs; one thread of the engine calls `next` until it sets `*end`, then `close`. */
typedef struct hr_stream_options {
  size_t size;
  const char* name; /* null: "stream" */
  const hr_field* fields;
  size_t field_count;
  const char* const* classes;
  size_t class_count;
  uint64_t label_count;
  uint64_t fingerprint; /* identity of what it gives */
  hr_status (*open)(void* user, uint64_t first, void** stream);
  hr_status (*next)(void* stream, hr_record* record, bool* end);
  void (*close)(void* stream); /* may be null */
  hr_user user;
} hr_stream_options;
#define HR_STREAM_OPTIONS_INIT                                                                \
  {                                                                                           \
    sizeof(hr_stream_options), NULL, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_source_stream(const hr_stream_options* options, hr_source** source);

typedef struct hr_source_info {
  size_t size;
  const char* name;
  const char* format; /* what it was recognised as: "images in folders"; empty: not opened by its path */
  uint64_t records;   /* of a stream HR_UNKNOWN */
  size_t field_count;
  size_t class_count;
  uint64_t label_count;
  uint64_t fingerprint;
  const char* left_out; /* files that lie there and are no records, as a sentence; may be empty */
  bool resident;
  bool streamed;
} hr_source_info;
#define HR_SOURCE_INFO_INIT \
  { sizeof(hr_source_info), NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false }
HR_API hr_status hr_source_describe(const hr_source* source, hr_source_info* info);
HR_API hr_status hr_source_field(const hr_source* source, size_t index, hr_field* field);
HR_API hr_status hr_source_class(const hr_source* source, size_t index, const char** name);
HR_API void hr_source_free(hr_source* source);

/* What lies in a source, found by a pass over its records that reads them and decodes their images: how many have
 * which label, the images' sizes, and what is bad or damaged. */
typedef struct hr_inspection hr_inspection;

typedef struct hr_inspect_options {
  size_t size;
  uint64_t max_examined; /* so many records, evenly spread; 0: all */
  size_t max_listed;     /* bad records, and as many that have a warning */
} hr_inspect_options;
#define HR_INSPECT_OPTIONS_INIT \
  { sizeof(hr_inspect_options), 0, 5 }

typedef struct hr_inspection_info {
  size_t size;
  uint64_t records;
  uint64_t examined;
  uint64_t bytes;     /* of the fields of those examined, as they are stored */
  int64_t min_height; /* of the images that could be decoded; 0 where there are none */
  int64_t max_height;
  int64_t min_width;
  int64_t max_width;
  size_t label_count; /* labels that occur */
  uint64_t labelled;  /* records that have one: of all where it is known without reading them */
  uint64_t bad;       /* of those examined */
  uint64_t warned;    /* of those examined: damaged in a way that changes no pixel */
  uint64_t oriented;  /* images whose EXIF data say that they are stored another way up */
  size_t bad_listed;
  size_t warned_listed;
} hr_inspection_info;
#define HR_INSPECTION_INFO_INIT \
  { sizeof(hr_inspection_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `options` may be null. */
HR_API hr_status hr_source_inspect(const hr_source* source, const hr_inspect_options* options,
                                   hr_inspection** inspection);
HR_API hr_status hr_inspection_describe(const hr_inspection* inspection, hr_inspection_info* info);
/* In ascending order. */
HR_API hr_status hr_inspection_label(const hr_inspection* inspection, size_t index, int64_t* label,
                                     uint64_t* records);
/* In the order of the records. */
HR_API hr_status hr_inspection_bad_record(const hr_inspection* inspection, size_t index, hr_bad_record* bad);
HR_API hr_status hr_inspection_warned_record(const hr_inspection* inspection, size_t index, hr_bad_record* warned);
HR_API void hr_inspection_free(hr_inspection* inspection);

/* Packs a data set into one record file, for fast reading by position. */
typedef struct hr_convert_options {
  size_t size;
  int64_t max_side; /* of encoded images: longer sides are reduced to this; 0: all stay as they are */
  int32_t quality;  /* 1 to 100: every image becomes such a JPEG; 0: only those that max_side reduces */
  int32_t threads;  /* 0: one a processor */
  int32_t split;    /* -1: all there are */
  bool apply_orientation;
  bool skip_bad; /* leaves bad records out of the file, up to max_bad_share of a split; else they are errors */
  double max_bad_share;
  const char* classes_at;
  const char* train_folder;
  const char* test_folder;
  uint64_t label_count;
  const char* quarantine; /* a file that lists bad records; null: none is written */
  hr_tally* tally;        /* counts those that are left out; may be null */
} hr_convert_options;
#define HR_CONVERT_OPTIONS_INIT \
  { sizeof(hr_convert_options), 0, 0, 0, -1, false, false, 0.01, NULL, NULL, NULL, 0, NULL, NULL }
typedef struct hr_convert_result {
  size_t size;
  uint64_t records;
  uint64_t bytes;
  uint64_t bad_records;
} hr_convert_result;
#define HR_CONVERT_RESULT_INIT \
  { sizeof(hr_convert_result), 0, 0, 0 }
/* `options` and `result` may be null. */
HR_API hr_status hr_convert(const char* data, const char* to, const hr_convert_options* options,
                            hr_convert_result* result);

/* ---- Operations ------------------------------------------------------------------------------------------------
 */

/* A chain, applied from left to right. Each call adds one at its end; pipeline/operation.h says what each does. */
typedef struct hr_operations hr_operations;

enum { HR_PAD_ZERO = 0, HR_PAD_REFLECT = 1 };
enum { HR_FLIP_EACH_PASS = 0, HR_FLIP_ALTERNATING = 1 };
enum { HR_CHANNELS_LAST = 0, HR_CHANNELS_FIRST = 1 };

HR_API hr_status hr_operations_create(hr_operations** chain);
HR_API void hr_operations_free(hr_operations* chain);
/* All of another chain. */
HR_API hr_status hr_operations_append(hr_operations* chain, const hr_operations* other);
/* "pad_crop(32, pad=4, zero) | flip(0.5)" */
HR_API hr_status hr_operations_describe(const hr_operations* chain, char** text);

HR_API hr_status hr_pad_crop(hr_operations* chain, int32_t size, int32_t pad, int32_t padding);
HR_API hr_status hr_flip(hr_operations* chain, float probability, int32_t draw);
/* `channels` entries of each; 1: the same for all channels. */
HR_API hr_status hr_normalize(hr_operations* chain, const float* mean, const float* std, size_t channels);
HR_API hr_status hr_cast(hr_operations* chain, int32_t dtype);
HR_API hr_status hr_to_layout(hr_operations* chain, int32_t layout);
HR_API hr_status hr_flatten(hr_operations* chain);
HR_API hr_status hr_resize(hr_operations* chain, int32_t size);
HR_API hr_status hr_center_crop(hr_operations* chain, int32_t size);
HR_API hr_status hr_color_jitter(hr_operations* chain, float brightness, float contrast, float saturation,
                                 float hue);
HR_API hr_status hr_brightness_contrast(hr_operations* chain, float brightness, float contrast);
HR_API hr_status hr_cutout(hr_operations* chain, int32_t size, const float* fill, size_t channels);
/* `field` may be null: "label". */
HR_API hr_status hr_one_hot(hr_operations* chain, int32_t classes, float smoothing, const char* field);
HR_API hr_status hr_mixup(hr_operations* chain, float alpha, float probability);
HR_API hr_status hr_cutmix(hr_operations* chain, float alpha, float probability);

typedef struct hr_random_resized_crop_options {
  size_t size;
  int32_t side; /* of the result */
  float min_area;
  float max_area;
  float min_ratio;
  float max_ratio;
} hr_random_resized_crop_options;
#define HR_RANDOM_RESIZED_CROP_OPTIONS_INIT \
  { sizeof(hr_random_resized_crop_options), 224, 0.08F, 1.0F, 3.0F / 4, 4.0F / 3 }
HR_API hr_status hr_random_resized_crop(hr_operations* chain, const hr_random_resized_crop_options* options);

/* Random numbers of one record in one pass, the same whoever draws them and when. Lives for one call. */
typedef struct hr_random hr_random;
HR_API uint32_t hr_random_bits(hr_random* random);                  /* uniform over all 2^32 values */
HR_API float hr_random_uniform(hr_random* random);                  /* in [0, 1) */
HR_API uint32_t hr_random_below(hr_random* random, uint32_t bound); /* in [0, bound); bound > 0 */

/* The caller's function on one field, which keeps its name: reads `in`, fills all of `out`. It must be pure;
 * several threads call it at once. */
typedef struct hr_user_map_options {
  size_t size;
  const char* name;
  uint32_t version;  /* part of every fingerprint: change it with the function */
  const char* field; /* null: "image" */
  hr_field output;   /* dtype and shape of the result */
  hr_status (*function)(void* user, const void* in, size_t in_bytes, const int64_t* in_shape, size_t in_rank,
                        void* out, size_t out_bytes, hr_random* random);
  hr_user user;
} hr_user_map_options;
#define HR_USER_MAP_OPTIONS_INIT                                                                     \
  {                                                                                                  \
    sizeof(hr_user_map_options), NULL, 1, NULL, {NULL, HR_F32, HR_RAW, 0, {0}}, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_user_map(hr_operations* chain, const hr_user_map_options* options);

/* What the caller's operation sees of one record. Lives for one call. */
typedef struct hr_sample hr_sample;
/* Of the input with this number: its bytes, elements or an encoded image's file. `shape` (HR_MAX_RANK entries) and
 * `rank` may be null. */
HR_API hr_status hr_sample_input(const hr_sample* sample, size_t input, const void** data, size_t* bytes,
                                 int64_t* shape, size_t* rank);
/* All of an output, uninitialised: to be filled before the function returns. */
HR_API hr_status hr_sample_output(hr_sample* sample, size_t output, void** room, size_t* bytes);
HR_API hr_status hr_sample_position(const hr_sample* sample, uint64_t* record, uint64_t* pass);
HR_API hr_random* hr_sample_random(hr_sample* sample);

/* The caller's own operation on any fields: it reads some, replaces some and adds others. Pure, like a user map.
 */
typedef struct hr_user_operation_options {
  size_t size;
  const char* name;
  uint32_t version;
  bool each_pass_anew;       /* it draws random numbers or looks at the pass */
  const char* const* inputs; /* null: "image" */
  size_t input_count;
  const hr_field* outputs;
  size_t output_count;
  hr_status (*function)(void* user, hr_sample* sample);
  hr_user user;
} hr_user_operation_options;
#define HR_USER_OPERATION_OPTIONS_INIT                                                        \
  {                                                                                           \
    sizeof(hr_user_operation_options), NULL, 1, false, NULL, 0, NULL, 0, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_user_operation(hr_operations* chain, const hr_user_operation_options* options);

/* ---- Caches ----------------------------------------------------------------------------------------------------
 */

typedef struct hr_cache hr_cache;

typedef struct hr_cache_stats {
  size_t size;
  uint64_t hits;
  uint64_t misses;
  uint64_t records; /* stored now */
  uint64_t bytes;
  uint64_t refused; /* did not fit the budget */
  uint64_t bad;     /* found damaged, to be computed again */
} hr_cache_stats;
#define HR_CACHE_STATS_INIT \
  { sizeof(hr_cache_stats), 0, 0, 0, 0, 0, 0 }

/* Budgets in bytes, 0: none. */
HR_API hr_status hr_cache_memory(uint64_t budget, hr_cache** cache);
/* `segment_bytes` 0: 256 MiB. */
HR_API hr_status hr_cache_disk(const char* folder, uint64_t budget, uint64_t segment_bytes, hr_cache** cache);
HR_API hr_status hr_cache_read_stats(const hr_cache* cache, hr_cache_stats* stats);
/* Why nothing more is stored; an empty string where all is well. */
HR_API hr_status hr_cache_trouble(const hr_cache* cache, char** text);
HR_API void hr_cache_free(hr_cache* cache);

/* ---- Datasets --------------------------------------------------------------------------------------------------
 */

/* A plan. Each call adds a stage to it, or fails and leaves it as it was; nothing is read until a loader runs it.
 * Loaders, copies and combinations keep the plan as it was when they were made. pipeline/dataset.h says what each
 * stage does. */
typedef struct hr_dataset hr_dataset;

HR_API hr_status hr_dataset_from(const hr_source* source, hr_dataset** dataset);
HR_API hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy);
HR_API void hr_dataset_free(hr_dataset* dataset);

typedef struct hr_decode_options {
  size_t size;
  int64_t height; /* of all images, where it is known; 0: any */
  int64_t width;
  bool apply_orientation;
} hr_decode_options;
#define HR_DECODE_OPTIONS_INIT \
  { sizeof(hr_decode_options), 0, 0, false }
typedef struct hr_shuffle_options {
  size_t size;
  uint64_t seed;
  bool each_epoch_anew; /* false: the same order every epoch */
  uint64_t window;      /* positions that are shuffled among themselves; 0: all of the epoch's */
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

/* A field whose first extent differs from record to record, and what it becomes. This struct does not grow. */
typedef struct hr_pad_field {
  const char* field;
  int64_t length; /* 0: the longest record's */
  uint64_t value; /* of each byte of padding, 0 to 255 */
} hr_pad_field;
typedef struct hr_padded_batch_options {
  size_t size;
  int64_t global;
  bool drop_remainder;
  const hr_pad_field* pad; /* null: every such field, to its longest record, with zeros */
  size_t pad_count;
} hr_padded_batch_options;
#define HR_PADDED_BATCH_OPTIONS_INIT \
  { sizeof(hr_padded_batch_options), 32, false, NULL, 0 }

enum { HR_SHARD_AUTO = 0, HR_SHARD_BY_FILE = 1, HR_SHARD_BY_ELEMENT = 2 };

/* `options` may be null. */
HR_API hr_status hr_dataset_decode(hr_dataset* dataset, const hr_decode_options* options);
HR_API hr_status hr_dataset_map(hr_dataset* dataset, const hr_operations* chain);
HR_API hr_status hr_dataset_shuffle(hr_dataset* dataset, const hr_shuffle_options* options); /* may be null */
HR_API hr_status hr_dataset_repeat(hr_dataset* dataset, int64_t times);
HR_API hr_status hr_dataset_take(hr_dataset* dataset, uint64_t count);
HR_API hr_status hr_dataset_skip(hr_dataset* dataset, uint64_t count);
HR_API hr_status hr_dataset_shard(hr_dataset* dataset, uint64_t count, uint64_t index);
HR_API hr_status hr_dataset_without_shard(hr_dataset* dataset, uint64_t count, uint64_t index);
HR_API hr_status hr_dataset_shard_for_worker(hr_dataset* dataset, uint64_t count, uint64_t index, int32_t by);
HR_API hr_status hr_dataset_unbatch(hr_dataset* dataset);
HR_API hr_status hr_dataset_cache(hr_dataset* dataset, const hr_cache* cache);
HR_API hr_status hr_dataset_batch(hr_dataset* dataset, const hr_batch_options* options); /* may be null */
HR_API hr_status hr_dataset_padded_batch(hr_dataset* dataset,
                                         const hr_padded_batch_options* options); /* may be null */
HR_API hr_status hr_dataset_prefetch(hr_dataset* dataset, int32_t batches);

/* The fields of one example, as a filter sees them. Lives for one call. */
typedef struct hr_example hr_example;
HR_API hr_status hr_example_bytes(const hr_example* example, const char* field, const void** data, size_t* bytes);
HR_API hr_status hr_example_shape(const hr_example* example, const char* field, int64_t* shape, size_t* rank);
/* The value of a raw scalar field of any integer type. */
HR_API hr_status hr_example_integer(const hr_example* example, const char* field, int64_t* value);

/* Keeps the records for which `keeps` sets `*keep`. Pure; several threads call it at once, once a record. */
typedef struct hr_filter hr_filter;
typedef struct hr_filter_options {
  size_t size;
  const char* name;
  uint32_t version; /* part of every fingerprint: change it with the function */
  bool processed;   /* it sees the fields as the stages before it leave them, not as the source holds them */
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
/* Keeps the records whose label is one of these. */
HR_API hr_status hr_dataset_filter_labels(hr_dataset* dataset, const int64_t* labels, size_t count);

/* One dataset out of several, before decode() and map(). */
HR_API hr_status hr_dataset_concatenate(const hr_dataset* const* parts, size_t count, hr_dataset** dataset);
/* In turn, `block` records each. */
HR_API hr_status hr_dataset_interleave(const hr_dataset* const* parts, size_t count, uint64_t block,
                                       hr_dataset** dataset);
typedef struct hr_mix_options {
  size_t size;
  const double* weights; /* one a part; null: as often as each has records */
  uint64_t seed;
  bool until_all_seen; /* smaller parts start again until every one was given whole; false: the first end is the
                          end */
} hr_mix_options;
#define HR_MIX_OPTIONS_INIT \
  { sizeof(hr_mix_options), NULL, 0, false }
/* `options` may be null. */
HR_API hr_status hr_dataset_mix(const hr_dataset* const* parts, size_t count, const hr_mix_options* options,
                                hr_dataset** dataset);
/* Record i has the fields of every part's record i. `suffixes`: one a part, for names that occur twice; may be
 * null. */
HR_API hr_status hr_dataset_zip(const hr_dataset* const* parts, size_t count, const char* const* suffixes,
                                hr_dataset** dataset);

/* For a program that has to look for signals: from now on `look` is called about twenty times a second when this
 * thread waits for a pass over all records. That is a filter's, which the functions below and hr_loader_open() may
 * be the first to need, that of hr_dataset_padded_batch() and of hr_source_inspect(). What it returns but HR_OK
 * ends the pass within a second and is what the function returns; a later call begins the pass again. Null:
 * nothing is called any more. `user` is released when another takes its place or the thread ends. Not to be called
 * by a callback. */
HR_API hr_status hr_set_scan_poll(hr_status (*look)(void* user), hr_user user);

typedef struct hr_dataset_info {
  size_t size;
  uint64_t records;         /* of one epoch; of a stream HR_UNKNOWN */
  uint64_t steps_per_epoch; /* of a stream, or before it is batched, HR_UNKNOWN */
  uint64_t fingerprint;     /* identity of the stream */
  size_t field_count;       /* of one sample after all operations */
  size_t class_count;
  bool streamed;
  int64_t global_batch; /* examples over all replicas; 0 before it is batched */
} hr_dataset_info;
#define HR_DATASET_INFO_INIT \
  { sizeof(hr_dataset_info), 0, 0, 0, 0, 0, false, 0 }
/* Filters are run for it, once. */
HR_API hr_status hr_dataset_describe(const hr_dataset* dataset, hr_dataset_info* info);
/* Names belong to the dataset and stay until it is freed. */
HR_API hr_status hr_dataset_field(const hr_dataset* dataset, size_t index, hr_field* field);
HR_API hr_status hr_dataset_class(const hr_dataset* dataset, size_t index, const char** name);
/* The plan as it will run, one stage a line. `devices` may be null. */
HR_API hr_status hr_dataset_explain(const hr_dataset* dataset, const hr_devices* devices, char** text);

/* A plan's name for data that its text cannot hold: arrays, generators, streams. This struct does not grow. */
typedef struct hr_named_source {
  const char* name;
  const hr_source* source;
} hr_named_source;

/* What the text of a plan cannot hold, because it is code, and what it may open. */
typedef struct hr_plan_options {
  size_t size;
  const hr_named_source* sources;
  size_t source_count;
  const hr_operations* operations; /* user maps and operations, by the names they have; may be null */
  const hr_filter* const* filters; /* by the names they have */
  size_t filter_count;
  const char* base;  /* where relative paths begin; null: in the process's working folder */
  bool refuse_paths; /* for a plan of somebody who must not say which files this process opens */
} hr_plan_options;
#define HR_PLAN_OPTIONS_INIT \
  { sizeof(hr_plan_options), NULL, 0, NULL, NULL, 0, NULL, false }
/* The plan as JSON, from which C++, C and Python make the same stream; pipeline/PLAN.md is the format.
 * `options` may be null, also of the next. */
HR_API hr_status hr_dataset_to_json(const hr_dataset* dataset, const hr_plan_options* options, char** json);
/* Opens the plan's sources. */
HR_API hr_status hr_dataset_from_json(const char* json, const hr_plan_options* options, hr_dataset** dataset);

/* ---- Loaders ---------------------------------------------------------------------------------------------------
 */

/* A running plan: threads, batch slots and position. */
typedef struct hr_loader hr_loader;
typedef struct hr_batch hr_batch;

enum { HR_CONVERT_AUTO = 0, HR_CONVERT_ON_HOST = 1, HR_CONVERT_ON_DEVICE = 2 };
enum { HR_RESIDENT_AUTO = 0, HR_RESIDENT_NEVER = 1, HR_RESIDENT_ALWAYS = 2 };
enum { HR_ON_ERROR_FAIL = 0, HR_ON_ERROR_SKIP = 1, HR_ON_ERROR_SUBSTITUTE = 2 };

/* pipeline/loader.h and pipeline/bad_record.h say more of each. */
typedef struct hr_loader_options {
  size_t size;
  uint64_t seed; /* of everything random in the plan */
  uint64_t epochs;
  int32_t world_replicas;       /* all that share the stream, in all processes; 0: this loader's alone */
  int32_t world_first;          /* number of this loader's first one */
  int32_t threads;              /* that compute; 0: chosen while running */
  int32_t reader_threads;       /* 0: chosen while running */
  int32_t prefetch;             /* batches ahead; -1: as the plan says */
  int32_t convert;              /* where u8 images become f32 */
  int32_t converted;            /* to HR_F32 or HR_BF16 */
  int32_t resident;             /* whether devices keep the samples of a run of several epochs */
  const char* start;            /* a state to continue from; null: the beginning */
  double stall_timeout_seconds; /* 0: never */
  uint64_t trace_spans;         /* the latest spans kept of each thread; 0: nothing is traced */
  int32_t numa_node;            /* -1: any */
  int32_t core_type;            /* -1: any */
  int32_t on_error;             /* of records that cannot be used */
  int32_t cpu_budget;           /* compute threads at most; 0: one a processor */
  double max_bad_share;
  const char* quarantine; /* a file that lists bad records; null: none is written */
  uint64_t memory_budget_bytes;
  uint64_t pinned_budget_bytes;
  uint64_t resident_budget_bytes;
  uint64_t headspace; /* batches made before the same bytes are handed out again and again; 0: off */
  int32_t reader_limit;
  /* Called about twenty times a second by a thread that waits in hr_loader_next(), or in hr_loader_open() for a
   * filter to judge all records: what it returns but HR_OK is what that returns. May be null. */
  hr_status (*while_waiting)(void* user);
  hr_user user;
  hr_tally* tally; /* counts records that are skipped or replaced; may be null */
} hr_loader_options;
#define HR_LOADER_OPTIONS_INIT                                                                                    \
  {                                                                                                               \
    sizeof(hr_loader_options), 0, 1, 0, 0, 0, 0, -1, HR_CONVERT_AUTO, HR_F32, HR_RESIDENT_AUTO, NULL, 120, 0, -1, \
        -1, HR_ON_ERROR_FAIL, 0, 0.01, NULL, 0, 0, 0, 0, 8, NULL, {NULL, NULL}, NULL                              \
  }

/* `options` may be null. */
HR_API hr_status hr_loader_open(const hr_dataset* dataset, const hr_devices* devices,
                                const hr_loader_options* options, hr_loader** loader);
/* The replica's share of the next batch, or null at the end of the last epoch. Blocks until it is assembled; work
 * of a GPU may still be on its way, see hr_batch_use_in(). Fails with the error of the batch it would have been.
 */
HR_API hr_status hr_loader_next(hr_loader* loader, int32_t replica, hr_batch** batch);
/* Wakes every waiting hr_loader_next(), which then fails with HR_CANCELLED. */
HR_API hr_status hr_loader_stop(hr_loader* loader);
/* Ends its threads. Batches that are held stay as they are. */
HR_API void hr_loader_free(hr_loader* loader);

typedef struct hr_loader_info {
  size_t size;
  int64_t local_rows;       /* of a replica's tensors */
  uint64_t steps_per_epoch; /* of a stream HR_UNKNOWN */
  size_t field_count;
  int32_t replicas;
  int32_t threads; /* that may compute at once now */
  bool tuned;      /* nothing is being tried any more */
} hr_loader_info;
#define HR_LOADER_INFO_INIT \
  { sizeof(hr_loader_info), 0, 0, 0, 0, 0, false }
HR_API hr_status hr_loader_describe(const hr_loader* loader, hr_loader_info* info);
HR_API hr_status hr_loader_field(const hr_loader* loader, size_t index, hr_field* field);

/* Where it stands, as one line of text: after the last batch that every replica took. */
HR_API hr_status hr_loader_state(const hr_loader* loader, char** text);
/* What the threads did lately, in the Trace Event Format; trace_spans asks for it. */
HR_API hr_status hr_loader_trace(const hr_loader* loader, char** json);

typedef struct hr_stats {
  size_t size;
  uint64_t elapsed_ns;
  uint64_t batches; /* handed out to all replicas */
  uint64_t examples;
  uint64_t bytes;
  uint64_t stall_ns; /* consumers waiting in next, the longest replica */
  uint64_t read_ns;  /* summed over threads, like the next two */
  uint64_t decode_ns;
  uint64_t operate_ns;
  uint64_t first_batch_ns;
  double ready_batches; /* mean number of finished batches waiting when one was asked for */
  double ready_share;   /* of the batches asked for: those that were finished by then */
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
/* All of it as JSON: the same, "stages", "choices" (what the engine decided for itself) and "verdict" (what bounds
 * it, and what would help). */
HR_API hr_status hr_loader_stats_json(const hr_loader* loader, char** json);

/* ---- Batches ---------------------------------------------------------------------------------------------------
 */

enum { HR_DEVICE_CPU = 1, HR_DEVICE_CUDA = 2, HR_DEVICE_CUDA_HOST = 3 }; /* as DLPack numbers them */

typedef struct hr_batch_info {
  size_t size;
  uint64_t epoch;
  uint64_t step;           /* within the epoch */
  uint64_t sequence;       /* over all epochs */
  int64_t global_examples; /* real ones, over all replicas */
  int64_t first_row;       /* real ones in the replicas before this one */
  int64_t examples;        /* real ones of this replica: the leading rows of every tensor */
  int64_t rows;            /* of every tensor */
  size_t tensor_count;
  size_t bad_count; /* records of the global batch that could not be used */
  int32_t device_type;
  int32_t device_id;
  bool last_of_epoch;
  bool writable; /* whether the holder may write to the tensors */
} hr_batch_info;
#define HR_BATCH_INFO_INIT \
  { sizeof(hr_batch_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false }

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
/* The source's number of each real example. */
HR_API hr_status hr_batch_records(const hr_batch* batch, const uint64_t** records, size_t* count);
HR_API hr_status hr_batch_bad_record(const hr_batch* batch, size_t index, hr_bad_record* bad);

/* The host waits until the tensors may be read. */
HR_API hr_status hr_batch_wait(const hr_batch* batch);
HR_API hr_status hr_batch_is_ready(const hr_batch* batch, bool* ready);
/* `stream` is a cudaStream_t as a number, 0 the default stream. What is submitted to it from now on waits for the
 * batch, the host does not; and the batch's memory is refilled only after what it was given by the time that the
 * batch, and every tensor exported from it, is freed. The stream must live until then. On the CPU the host waits.
 */
HR_API hr_status hr_batch_use_in(const hr_batch* batch, uintptr_t stream);
/* Gives the slot back, unless exported tensors still share it. */
HR_API void hr_batch_free(hr_batch* batch);

struct DLManagedTensor;
struct DLManagedTensorVersioned;

typedef struct hr_dlpack_options {
  size_t size;
  bool has_stream;     /* the consumer's stream is `stream`, as for hr_batch_use_in() */
  bool unsynchronized; /* without a stream: nobody waits; false: the host does */
  bool padding;        /* all rows; false: only the real examples */
  bool read_only;
  uintptr_t stream;
} hr_dlpack_options;
#define HR_DLPACK_OPTIONS_INIT \
  { sizeof(hr_dlpack_options), false, false, false, false, 0 }
/* The field as an owned tensor of DLPack 1.x, or of before 1.0: it points to the batch's memory and shares it
 * until its deleter is called. `options` may be null. */
HR_API hr_status hr_batch_dlpack(const hr_batch* batch, const char* field, const hr_dlpack_options* options,
                                 struct DLManagedTensorVersioned** tensor);
HR_API hr_status hr_batch_legacy_dlpack(const hr_batch* batch, const char* field, const hr_dlpack_options* options,
                                        struct DLManagedTensor** tensor);

/* ---- Digests ---------------------------------------------------------------------------------------------------
 */

/* The identity of a stream: a SHA-256 of every global batch, the same for any number of replicas, threads and
 * processes, and from C++, C and Python. One thread at a time. */
typedef struct hr_digest hr_digest;

typedef struct hr_batch_digest {
  size_t size;
  uint64_t epoch;
  uint64_t step;
  int64_t examples;
  char sha256[72]; /* 64 hexadecimal digits and a zero */
} hr_batch_digest;
#define HR_BATCH_DIGEST_INIT                \
  {                                         \
    sizeof(hr_batch_digest), 0, 0, 0, { 0 } \
  }

HR_API hr_status hr_digest_create(const hr_loader* loader, hr_digest** digest);
/* Takes the next batch of every replica of the loader. `*end` at the end of the stream, where nothing is digested.
 * `batch` may be null. */
HR_API hr_status hr_digest_next(hr_digest* digest, hr_loader* loader, hr_batch_digest* batch, bool* end);
/* SHA-256 over the batches' digests so far. */
HR_API hr_status hr_digest_finish(hr_digest* digest, char** sha256);
HR_API void hr_digest_free(hr_digest* digest);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_HEADRACE_H_ */
