// Prints the progress of a fit.
#pragma once

#include <cstdio>
#include <limits>
#include <string>

#include "headrace/train/callbacks.h"
#include "headrace/train/fit_options.h"

namespace headrace {

class Progress {
 public:
  // If the output is not a terminal, verbose 1 prints what 2 does.
  explicit Progress(const FitOptions& options);
  ~Progress() { leave_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin_epoch(int epoch) const;
  // Print lines as wide as the terminal is now.
  void step(const StepReport& report);
  void end_epoch(const EpochReport& report);
  // Ends the line of an unfinished epoch's bar, so that the next output begins a new one.
  void leave_line() noexcept;

 private:
  // An output that takes nothing more ends no training.
  void say(const std::string& text) const noexcept;

  enum class Style { kNothing, kLines, kBar };

  std::FILE* output_;
  int epochs_;
  Style style_;
  bool open_ = false;  // the bar is shown, with the cursor after it
};

// Returns "1563/1563 - 7s - 4ms/step - loss: 0.2614 - accuracy: 0.9230 - val_loss: ..."; "300/1563 - ..." for a
// stopped epoch. If it exceeds `columns`, drops the less important parts: loss, bad records and metrics stay
// longest.
std::string epoch_line(const EpochReport& report, int columns = std::numeric_limits<int>::max());
// Returns "  781/1563 [=======>......] 23k/s - ETA 3s - input stall 0.1% copy 0.0% idle 0.4% - loss: ...". On a
// terminal of fewer `columns`, shortens the bar or drops the less important parts; the last three columns stay
// free.
std::string step_line(const StepReport& report, int columns = std::numeric_limits<int>::max());

}  // namespace headrace
