// One line on standard error that is overwritten; only on a terminal.
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

  // Shows the text, at most five times a second; drops texts in between.
  void show(const std::string& text);
  // Clears the line; the cursor is at its start.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  Stopwatch since_shown_;
};

}  // namespace headrace::tools
