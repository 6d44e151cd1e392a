/* Operations on samples. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_OPERATIONS_H_
#define HEADRACE_C_OPERATIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/c/errors.h"
#include "headrace/c/records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A chain, applied from left to right. */
typedef struct hr_operations hr_operations;

HR_API hr_status hr_operations_create(hr_operations** chain);
HR_API void hr_operations_free(hr_operations* chain);
/* Appends the operation called `name`, with `options` as a JSON object: hr_operations_add(chain, "pad_crop",
 * "{\"size\": 32, \"pad\": 4}"). Null: all defaults. Names, options and defaults are those of plans in JSON
 * (pipeline/PLAN.md) and of C++, pipeline/operations.h. An error names the place: "pad_crop.size". */
HR_API hr_status hr_operations_add(hr_operations* chain, const char* name, const char* options);
/* Appends all operations of another chain. */
HR_API hr_status hr_operations_append(hr_operations* chain, const hr_operations* other);
/* Returns text such as "pad_crop(32, pad=4, zero) | flip(0.5)". */
HR_API hr_status hr_operations_describe(const hr_operations* chain, char** text);

/* Random numbers of one record in one pass, independent of who draws them and when. Valid for one call. */
typedef struct hr_random hr_random;
HR_API uint32_t hr_random_bits(hr_random* random);                  /* uniform over all 2^32 values */
HR_API float hr_random_uniform(hr_random* random);                  /* in [0, 1) */
HR_API uint32_t hr_random_below(hr_random* random, uint32_t bound); /* in [0, bound); bound > 0 */

/* A custom function on one field, which keeps its name: reads `in`, fills all of `out`. Several threads call it at
 * once. REQUIRES: it is pure. */
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
#define HR_USER_MAP_OPTIONS_INIT                                                                        \
  {                                                                                                     \
    sizeof(hr_user_map_options), NULL, 1, NULL, {NULL, HR_F32, HR_RAW, 0, {0}, 0}, NULL, { NULL, NULL } \
  }
HR_API hr_status hr_user_map(hr_operations* chain, const hr_user_map_options* options);

/* A custom operation's view of one record. Valid for one call. */
typedef struct hr_sample hr_sample;
/* Returns the bytes of the input with this zero-based index: elements, or an encoded image's file. `shape`
 * (HR_MAX_RANK entries) and `rank` may be null. */
HR_API hr_status hr_sample_input(const hr_sample* sample, size_t input, const void** data, size_t* bytes,
                                 int64_t* shape, size_t* rank);
/* Returns the whole output, uninitialised. REQUIRES: it is filled before the function returns. */
HR_API hr_status hr_sample_output(hr_sample* sample, size_t output, void** room, size_t* bytes);
HR_API hr_status hr_sample_position(const hr_sample* sample, uint64_t* record, uint64_t* pass);
HR_API hr_random* hr_sample_random(hr_sample* sample);

/* A custom operation on any fields, which reads some, replaces some and adds others. Pure, like a user map. */
typedef struct hr_user_operation_options {
  size_t size;
  const char* name;
  uint32_t version;
  bool each_pass_anew;       /* draws random numbers or depends on the pass */
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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_OPERATIONS_H_ */
