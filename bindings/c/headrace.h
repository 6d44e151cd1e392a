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

#include "headrace/c/batches.h"
#include "headrace/c/datasets.h"
#include "headrace/c/devices.h"
#include "headrace/c/errors.h"
#include "headrace/c/loaders.h"
#include "headrace/c/operations.h"
#include "headrace/c/records.h"
#include "headrace/c/sources.h"

#endif /* HEADRACE_HEADRACE_H_ */
