// Symbol visibility of the shared libraries. They are compiled with hidden visibility; a public header marks its
// namespace, so that its declarations can be linked to from outside. Those of private headers cannot.
#pragma once

#if defined(__GNUC__)
#define HEADRACE_API [[gnu::visibility("default")]]
// Marks a class of a public header that holds the implementation: not exported.
#define HEADRACE_HIDDEN [[gnu::visibility("hidden")]]
#else
#define HEADRACE_API
#define HEADRACE_HIDDEN
#endif
