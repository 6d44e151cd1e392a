// A sequence of stream operations recorded once and launched many times, at the cost of one launch.
#pragma once

namespace headrace {

// Made by Stream::end_capture(). Pointers are fixed at capture; what they point to may change between
// launches. Must outlive every launch of it that has not finished.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

}  // namespace headrace
