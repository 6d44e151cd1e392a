// What the shared libraries export. They are compiled with hidden visibility: a face marks its namespace, and what
// it declares can be linked to from outside the library; what only rooms declare cannot.
#pragma once

#if defined(__GNUC__)
#define HEADRACE_API [[gnu::visibility("default")]]
// On a class within a face that keeps the implementation: not exported.
#define HEADRACE_HIDDEN [[gnu::visibility("hidden")]]
#else
#define HEADRACE_API
#define HEADRACE_HIDDEN
#endif
