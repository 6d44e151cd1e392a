#include "headrace/train/losses.h"

#include "headrace/devices/base/error.h"

namespace headrace {

Loss sparse_categorical_crossentropy(const SparseCrossEntropyOptions& options) {
  if (!(options.label_smoothing >= 0.0F && options.label_smoothing < 1.0F)) {
    throw ConfigError("label smoothing must be at least 0 and below 1, got " +
                      std::to_string(options.label_smoothing));
  }
  return {.options = options};
}

}  // namespace headrace
