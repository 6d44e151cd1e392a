#include "headrace/train/losses/mean_over_elements.h"

namespace headrace {

Loss mean_absolute_error(Reduction reduction) {
  return mean_over_elements("mean_absolute_error", ElementLoss::kAbsoluteError, reduction);
}

}  // namespace headrace
