// What a fit prints.
#pragma once

#include <cstdio>
#include <limits>
#include <string>

#include "headrace/train/callbacks.h"
#include "headrace/train/fit_options.h"

namespace headrace {

class Progress {
 public:
  // Where the output is no terminal, verbose 1 prints what 2 does.
  explicit Progress(const FitOptions& options);
  ~Progress() { leave_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin_epoch(int epoch) const;
  // As wide as the terminal is now.
  void step(const StepReport& report);
  void end_epoch(const EpochReport& report);
  // Where the bar of an unfinished epoch stands, what is printed next begins a new line.
  void leave_line() noexcept;

 private:
  enum class Style { kNothing, kLines, kBar };

  std::FILE* output_;
  int epochs_;
  Style style_;
  bool open_ = false;  // the bar stands there, the cursor behind it
};

// "1563/1563 - 7s - 4ms/step - loss: 0.2614 - accuracy: 0.9230 - val_loss: ..."; "300/1563 - ..." of an epoch that
// was stopped. In fewer `columns` than that takes, without the less important parts: loss, bad records and metrics
// stay longest.
std::string epoch_line(const EpochReport& report, int columns = std::numeric_limits<int>::max());
// "  781/1563 [=======>......] 23k/s - ETA 3s - input stall 0.1% copy 0.0% idle 0.4% - loss: ...". On a terminal
// of fewer `columns` than that takes, with a short bar or without the less important parts; the last three columns
// stay free.
std::string step_line(const StepReport& report, int columns = std::numeric_limits<int>::max());

}  // namespace headrace
