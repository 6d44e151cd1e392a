/* The interface's version, statuses and errors, the user data of callbacks, and devices. Part of
 * <headrace/headrace.h>. */
#ifndef HEADRACE_C_BASE_H_
#define HEADRACE_C_BASE_H_

#include <stddef.h>
#include <stdint.h>

/* The version of these headers, which grows when a symbol or a struct is added. A program runs with any library
 * whose hr_abi_version() is not smaller. */
#define HR_ABI_VERSION 8

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

typedef int32_t hr_status;
enum {
  HR_OK = 0,
  HR_INVALID_ARGUMENT = 1, /* the caller's configuration or argument is wrong */
  HR_NOT_FOUND = 2,        /* a path, device, name or record does not exist */
  HR_UNSUPPORTED = 3,      /* understood, but this build or device cannot do it */
  HR_DATA_CORRUPT = 4,     /* bytes that violate their format */
  HR_IO = 5,               /* the operating system refused, or a read was short */
  HR_DEVICE = 6,           /* a device or its driver failed */
  HR_OUT_OF_MEMORY = 7,    /* an allocation or a budget was exhausted */
  HR_CANCELLED = 8,        /* stopped on request */
  HR_TIMEOUT = 9,          /* a watchdog expired; the message names what was waited for */
  HR_INTERNAL = 10         /* a broken invariant of Headrace */
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
  uint64_t record;     /* its number; HR_UNKNOWN if not known */
  uint64_t offset;     /* of the byte at fault; HR_UNKNOWN if not known */
  const char* device;  /* of a DeviceError, else empty */
} hr_error;

/* Returns this thread's last error. Never null; valid until the next call that fails in this thread. */
HR_API const hr_error* hr_last_error(void);
/* Returns "ok", "invalid_argument" ... */
HR_API const char* hr_status_name(hr_status status);

/* Reports an error from a callback: `return hr_fail(HR_DATA_CORRUPT, "no such row", NULL);`. The engine handles
 * it, and the caller of hr_loader_next() may see it. HR_DATA_CORRUPT, HR_NOT_FOUND and HR_IO concern the record; a
 * callback may also return a bare status. Returns `status`; `hint` may be null. */
HR_API hr_status hr_fail(hr_status status, const char* message, const char* hint);

HR_API void hr_string_free(char* text);

/* The `user` argument of a callback. `release` (may be null) is called once, by any thread, when nothing can call
 * the callback any more: the plans, loaders and batches that know it are gone, or the call that took it failed. */
typedef struct hr_user {
  void* data;
  void (*release)(void* data);
} hr_user;

/* Devices, one per replica. */
typedef struct hr_devices hr_devices;

/* Opens one device per replica. `spec`: "auto", "cpu", "cpu:4", "cuda", "cuda:0,2", "cuda:0x4". */
HR_API hr_status hr_devices_open(const char* spec, hr_devices** devices);
HR_API hr_status hr_devices_count(const hr_devices* devices, int32_t* count);
HR_API hr_status hr_devices_name(const hr_devices* devices, int32_t replica, const char** name); /* "cuda:1" */
HR_API void hr_devices_free(hr_devices* devices);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_BASE_H_ */
