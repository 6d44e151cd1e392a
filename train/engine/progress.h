// What a fit prints.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "headrace/train/callbacks.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/metrics.h"

namespace headrace {

class Progress {
 public:
  // Where the output is no terminal, verbose 1 prints what 2 does.
  Progress(const FitOptions& options, const std::vector<Metric>& metrics);

  void begin_epoch(int epoch) const;
  void step(const StepReport& report) const;
  void end_epoch(const EpochReport& report) const;

 private:
  enum class Style { kNothing, kLines, kBar };

  std::FILE* output_;
  int epochs_;
  bool accuracy_;
  Style style_;
};

// "1563/1563 - 7s - 4ms/step - loss: 0.2614 - accuracy: 0.9230 - val_loss: ...".
std::string epoch_line(const EpochReport& report, bool accuracy);
// "  781/1563 [=======>......] 23k/s - ETA 3s - input stall 0.1% copy 0.0% idle 0.4% - loss: ...".
std::string step_line(const StepReport& report, bool accuracy);

}  // namespace headrace
