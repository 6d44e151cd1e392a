/* Devices, one per replica. Part of <headrace/headrace.h>. */
#ifndef HEADRACE_C_DEVICES_H_
#define HEADRACE_C_DEVICES_H_

#include <stdint.h>

#include "headrace/c/errors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_devices hr_devices;

/* Opens one device per replica. `spec`: "auto", "cpu", "cpu:4", "cuda", "cuda:0,2", "cuda:0x4". */
HR_API hr_status hr_devices_open(const char* spec, hr_devices** devices);
HR_API hr_status hr_devices_count(const hr_devices* devices, int32_t* count);
HR_API hr_status hr_devices_name(const hr_devices* devices, int32_t replica, const char** name); /* "cuda:1" */
HR_API void hr_devices_free(hr_devices* devices);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_DEVICES_H_ */
