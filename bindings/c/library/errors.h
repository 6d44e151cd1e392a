// Converts exceptions to statuses, and statuses of callbacks to exceptions. No exception passes these functions.
#pragma once

#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/headrace.h"

namespace headrace::c {

// Makes this process's messages, from the first call on, name functions as in <headrace/headrace.h> (c_words.cpp).
void speak_c();

// Returns the status of the exception being handled, and makes it the thread's last error.
hr_status keep_error() noexcept;

// The interface function that this thread is executing.
extern thread_local const char* current_function;

// Runs the body of `function`. Every interface function that can fail uses it.
template <typename Body>
hr_status guarded(const char* function, const Body& body) noexcept {
  const char* const outer = std::exchange(current_function, function);
  hr_status status = HR_OK;
  try {
    speak_c();
    body();
  } catch (...) {
    status = keep_error();
  }
  current_function = outer;
  return status;
}

// Throws ConfigError if it is null.
void require(const void* pointer, const char* name);

// Returns `pointer` as a reference. Throws ConfigError if it is null.
template <typename Thing>
Thing& given(Thing* pointer, const char* name) {
  require(pointer, name);
  return *pointer;
}

// A call to the program's function `name`. Throws the error that it reported with hr_fail(), else its last error,
// else that it returned this status.
class Callback {
 public:
  explicit Callback(const char* name) noexcept;
  void end(hr_status status) const;

 private:
  const char* name_;
  unsigned errors_before_;  // of this thread
};

template <typename Call>
void call_back(const char* name, const Call& call) {
  const Callback callback(name);
  callback.end(call());
}

}  // namespace headrace::c
