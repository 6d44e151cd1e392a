// Records work on a stream.
#pragma once

#include <exception>
#include <memory>

#include "headrace/devices/stream.h"

namespace headrace {

// What `submit` submits to the stream, as one piece of work. An exception leaves the stream as it was.
template <typename Submit>
std::unique_ptr<CapturedWork> capture(Stream& stream, const Submit& submit) {
  stream.begin_capture();
  try {
    submit();
  } catch (...) {
    try {
      stream.end_capture();
    } catch (const std::exception&) {
      // Half a capture need not be one that could end: what broke it off is the error.
    }
    throw;
  }
  return stream.end_capture();
}

}  // namespace headrace
