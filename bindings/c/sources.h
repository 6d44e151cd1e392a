/* Sources of records, their inspection and conversion. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_SOURCES_H_
#define HEADRACE_C_SOURCES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/errors.h"
#include "headrace/c/records.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* The type of the labels of CSV and TFRecords. */
enum {
  HR_LABEL_AUTO = 0,  /* integers or class names; non-integral numbers are an error */
  HR_LABEL_CLASS = 1, /* each distinct value is a class */
  HR_LABEL_NUMBER = 2 /* float32, for regression */
};

/* Setting a member that the format does not use is an error. */
typedef struct hr_open_options {
  size_t size;
  int32_t format;
  int32_t split;
  const char* classes_at; /* for images in folders: which folder names the class; see LayoutOptions in C++ */
  const char* train_folder;
  const char* test_folder;
  uint64_t label_count;       /* for formats that do not store the number of classes */
  uint64_t memory_limit;      /* bytes unpacked into memory; 0: 4 GiB */
  const char* const* classes; /* class names, for formats that have none */
  size_t class_count;
  const char* path_column;       /* for CSV; null: "path". For WebDataset the image's extension */
  const char* label_column;      /* for CSV; null: "label". For WebDataset "cls" or "json.label", as these */
  const char* const* image_keys; /* for TFRecords; null: "image/encoded", "image" */
  size_t image_key_count;
  const char* const* label_keys; /* for TFRecords; null: "image/class/label", "label" */
  size_t label_key_count;
  uint64_t fingerprint;     /* for a web stream: identifies its data */
  uint64_t max_image_bytes; /* for a web stream; 0: 1 GiB */
  /* for CSV, TFRecords, WebDataset and images in folders: columns, features, or members and files by their
   * extension
   * ("txt:text", "seg.png:mask", "json.box"), that become fields; ColumnOptions::columns in C++ */
  const char* const* columns;
  size_t column_count;
  int32_t label_type;
} hr_open_options;
#define HR_OPEN_OPTIONS_INIT                                                                                 \
  {                                                                                                          \
    sizeof(hr_open_options), HR_FORMAT_AUTO, HR_TRAIN, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, 0, \
        NULL, 0, 0, 0, NULL, 0, HR_LABEL_AUTO                                                                \
  }

/* `options` may be null. */
HR_API hr_status hr_source_open(const char* path, const hr_open_options* options, hr_source** source);
HR_API hr_status hr_source_open_all(const char* const* paths, size_t count, const hr_open_options* options,
                                    hr_source** source);

/* One field of records in memory: `bytes` bytes of elements, back to back. If `owner.release` is null, the bytes
 * are copied; otherwise they must stay in place, unchanged, until it is called. This struct does not grow. */
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

/* Receives the fields of one record from a callback, each once. Valid for one call. */
typedef struct hr_record hr_record;
HR_API hr_status hr_record_put(hr_record* record, size_t field, const void* data, size_t bytes);
/* Returns memory for the field. REQUIRES: it is filled before the next call to any function here. */
HR_API hr_status hr_record_allocate(hr_record* record, size_t field, size_t bytes, void** room);

/* Records made by a function of their zero-based number. Several threads call it at once, in any order.
 * REQUIRES: the same number gives the same bytes. */
typedef struct hr_generator_options {
  size_t size;
  const char* name; /* null: "generator" */
  const hr_field* fields;
  size_t field_count;
  uint64_t records;
  uint64_t fingerprint; /* identifies its records: change it with the function or its data */
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

/* Records that a function returns one after another until it sets `*end`. hr_source_pulled() calls it to the end,
 * in the calling thread. */
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

/* Records that arrive one after another, possibly without end, and are not kept. Each loader opens the stream
 * once, at the first record it needs; one engine thread calls `next` until it sets `*end`, then `close`. */
typedef struct hr_stream_options {
  size_t size;
  const char* name; /* null: "stream" */
  const hr_field* fields;
  size_t field_count;
  const char* const* classes;
  size_t class_count;
  uint64_t label_count;
  uint64_t fingerprint; /* identifies its records */
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

/* Arrow's structs, in its own abi.h or in headrace/pipeline/arrow_structs.h. */
struct ArrowArrayStream;

/* Which columns of a table of Arrow become fields; see ArrowOptions in C++. */
typedef struct hr_arrow_options {
  size_t size;
  const char* name;         /* null: "arrow" */
  const char* image_column; /* null: the only column of images */
  const char* label_column; /* null: "label", if there is one */
  const char* const* columns;
  size_t column_count;
  int32_t label_type;
  const char* const* classes; /* class names by label, if the table does not have them */
  size_t class_count;
  uint64_t label_count;
  uint64_t memory_limit; /* for what has to be converted; 0: 4 GiB */
} hr_arrow_options;
#define HR_ARROW_OPTIONS_INIT \
  { sizeof(hr_arrow_options), NULL, NULL, NULL, NULL, 0, HR_LABEL_AUTO, NULL, 0, 0, 0 }
/* Takes all batches of the stream, without a copy, and keeps them while the source lives. The stream is moved
 * from, also on failure. `options` may be null. */
HR_API hr_status hr_source_arrow(struct ArrowArrayStream* stream, const hr_arrow_options* options,
                                 hr_source** source);
/* Serves batch after batch of a stream, which is not kept: for tables larger than memory. `open` fills in a stream
 * at its first batch; it is called once at once, for the schema, and then by each further loader, on one engine
 * thread. Records are read in order; the names of classes must be given. `options` may be null. */
HR_API hr_status hr_source_arrow_stream(hr_status (*open)(void* user, struct ArrowArrayStream* stream),
                                        hr_user user, const hr_arrow_options* options, hr_source** source);

typedef struct hr_source_info {
  size_t size;
  const char* name;
  const char* format; /* the recognised format: "images in folders"; empty: not opened by its path */
  uint64_t records;   /* HR_UNKNOWN for a stream */
  size_t field_count;
  size_t class_count;
  uint64_t label_count;
  uint64_t fingerprint;
  const char* left_out; /* describes files that are not records and columns that are not fields; may be empty */
  bool resident;
  bool streamed;
  const char* reading; /* in one line how the data were read: format, split, classes, label, what is left out */
} hr_source_info;
#define HR_SOURCE_INFO_INIT \
  { sizeof(hr_source_info), NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL }
HR_API hr_status hr_source_describe(const hr_source* source, hr_source_info* info);
HR_API hr_status hr_source_field(const hr_source* source, size_t index, hr_field* field);
HR_API hr_status hr_source_class(const hr_source* source, size_t index, const char** name);
HR_API void hr_source_free(hr_source* source);

/* The contents of a source, found by a pass that reads its records and decodes their images: the records per
 * label, the images' sizes, and what is bad or damaged. */
typedef struct hr_inspection hr_inspection;

typedef struct hr_inspect_options {
  size_t size;
  uint64_t max_examined; /* maximum of records, evenly spread; 0: all */
  size_t max_listed;     /* maximum of bad records listed, and of records with a warning */
} hr_inspect_options;
#define HR_INSPECT_OPTIONS_INIT \
  { sizeof(hr_inspect_options), 0, 5 }

typedef struct hr_inspection_info {
  size_t size;
  uint64_t records;
  uint64_t examined;
  uint64_t bytes;     /* of the examined records' fields, as stored */
  int64_t min_height; /* of the images that could be decoded; 0 if there are none */
  int64_t max_height;
  int64_t min_width;
  int64_t max_width;
  size_t label_count; /* distinct labels */
  uint64_t labelled;  /* records that have a label: of all records if known without reading them */
  uint64_t bad;       /* of the examined records */
  uint64_t warned;    /* of the examined records: damaged in a way that changes no pixel */
  uint64_t oriented;  /* images whose EXIF data give another orientation */
  size_t bad_listed;
  size_t warned_listed;
} hr_inspection_info;
#define HR_INSPECTION_INFO_INIT \
  { sizeof(hr_inspection_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `options` may be null. */
HR_API hr_status hr_source_inspect(const hr_source* source, const hr_inspect_options* options,
                                   hr_inspection** inspection);
HR_API hr_status hr_inspection_describe(const hr_inspection* inspection, hr_inspection_info* info);
/* Returns a label and its number of records. Labels are in ascending order. */
HR_API hr_status hr_inspection_label(const hr_inspection* inspection, size_t index, int64_t* label,
                                     uint64_t* records);
/* Bad and warned records are listed in the order of the records. */
HR_API hr_status hr_inspection_bad_record(const hr_inspection* inspection, size_t index, hr_bad_record* bad);
HR_API hr_status hr_inspection_warned_record(const hr_inspection* inspection, size_t index, hr_bad_record* warned);
HR_API void hr_inspection_free(hr_inspection* inspection);

/* Options for packing a data set into one record file, for fast reading by position. */
typedef struct hr_convert_options {
  size_t size;
  int64_t max_side; /* of encoded images: longer sides are reduced to this; 0: unchanged */
  int32_t quality;  /* 1 to 100: re-encodes every image as JPEG; 0: only those that max_side reduces */
  int32_t threads;  /* 0: one per processor */
  int32_t split;    /* -1: all splits */
  bool apply_orientation;
  bool skip_bad; /* omits bad records, up to max_bad_share of a split; false: they are errors */
  double max_bad_share;
  const char* classes_at;
  const char* train_folder;
  const char* test_folder;
  uint64_t label_count;
  const char* quarantine; /* a file that lists bad records; null: no file is written */
  hr_tally* tally;        /* counts the omitted records; may be null */
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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_SOURCES_H_ */
