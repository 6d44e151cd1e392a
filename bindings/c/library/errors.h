// Where exceptions become statuses, and statuses of callbacks exceptions. Nothing thrown passes these functions.
#pragma once

#include <string>
#include <utility>

#include "headrace/bindings/c/library/c_words.h"
#include "headrace/devices/base/error.h"
#include "headrace/headrace.h"

namespace headrace::c {

// The status of the exception that is being handled, which becomes the thread's last error.
hr_status keep_error() noexcept;

// The function of the interface that this thread is in.
extern thread_local const char* current_function;

// The body of `function`, and of every function of the interface that can fail.
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

// ConfigError where it is null.
void require(const void* pointer, const char* name);

// `pointer` as a reference; ConfigError where it is null.
template <typename Thing>
Thing& given(Thing* pointer, const char* name) {
  require(pointer, name);
  return *pointer;
}

// A call of the program's function `name`. Throws what it said with hr_fail(), or what failed in it last, or that
// it returned this status.
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
