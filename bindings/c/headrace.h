/* Headrace from C: plans, loaders and batches behind opaque handles. README.md beside it begins with ten lines.
 *
 * Options. Sources, stages, operations and loaders take their options as a JSON object, by the names that C++,
 * Python and plans give them; null stands for all defaults. Whatever is unknown is an error that names its place.
 *
 * Status. Every function that can fail returns an hr_status: HR_OK, or what went wrong; hr_last_error() then has
 * the message of the C++ exception. A null pointer is an error unless documented otherwise; outputs are written
 * only if the function succeeds. No exception leaves the library.
 *
 * Ownership. The caller owns every handle that has an `hr_<thing>_free`. Freeing NULL is a no-op. Handles may be
 * freed in any order: each keeps what it needs of others, so a batch may outlive its loader, and a loader its
 * dataset and devices. Free strings returned through char** with hr_string_free(); a const char* belongs to the
 * handle that returned it.
 *
 * Structs. Initialise a struct whose first member is `size` with its macro HR_..._INIT, which sets the size and
 * the defaults; later versions add members at the end.
 *
 * Threads. One thread at a time takes a replica's batches. One thread at a time changes an hr_dataset or
 * hr_parts. Any thread may call everything else. A loader does not survive fork(): open it afterwards.
 */
#ifndef HEADRACE_HEADRACE_H_
#define HEADRACE_HEADRACE_H_

#include "headrace/c/base.h"
#include "headrace/c/datasets.h"
#include "headrace/c/loaders.h"

#endif /* HEADRACE_HEADRACE_H_ */
