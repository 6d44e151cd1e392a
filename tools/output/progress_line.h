// One line on standard error that is written over itself; only on a terminal.
#pragma once

#include <string>

#include "headrace/devices/base/clock.h"

namespace headrace::tools {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shown no more than five times a second; texts in between are dropped.
  void show(const std::string& text);
  // The line is gone, the cursor at its start.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  Stopwatch since_shown_;
};

}  // namespace headrace::tools
