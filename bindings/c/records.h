/* The fields of records, and bad records. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_RECORDS_H_
#define HEADRACE_C_RECORDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/errors.h"

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

/* A record that cannot be used, or that was used although its file is damaged. Strings belong to the handle that
 * returned it. */
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

/* Counts the records that loaders and conversions skip or replace, each once, over all loaders, splits and epochs
 * that it is given to. For a single loader's counts, including records with a warning, see hr_stats. */
typedef struct hr_tally hr_tally;

typedef struct hr_tally_count {
  size_t size;
  uint64_t bad;
  uint64_t records; /* of all sources read */
} hr_tally_count;
#define HR_TALLY_COUNT_INIT \
  { sizeof(hr_tally_count), 0, 0 }

HR_API hr_status hr_tally_create(hr_tally** tally);
HR_API hr_status hr_tally_read(const hr_tally* tally, hr_tally_count* count);
/* Returns the first bad record encountered; fails with HR_NOT_FOUND if there was none. */
HR_API hr_status hr_tally_first(const hr_tally* tally, hr_bad_record* first);
HR_API void hr_tally_free(hr_tally* tally);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_RECORDS_H_ */
