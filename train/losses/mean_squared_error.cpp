#include "headrace/train/losses/mean_over_elements.h"

namespace headrace {

Loss mean_squared_error(Reduction reduction) {
  return mean_over_elements("mean_squared_error", ElementLoss::kSquaredError, reduction);
}

}  // namespace headrace
