#include "headrace/pipeline/operations/machinery/beta.h"

#include <algorithm>
#include <cmath>

#include "headrace/pipeline/operations/kernels/portable_math.h"

namespace headrace {
namespace {

// Returns a uniform number in (0, 1), never an end.
double open_uniform(Philox& random) { return (static_cast<double>(random.next_u32()) + 0.5) * 0x1p-32; }

double by_johnk(double alpha, Philox& random) {
  for (;;) {
    const double x = logarithm(open_uniform(random)) / alpha;
    const double y = logarithm(open_uniform(random)) / alpha;
    if (exponential(x) + exponential(y) <= 1) return 1 / (1 + exponential(y - x));
  }
}

double by_ulrich(double alpha, Philox& random) {
  for (;;) {
    const double x = 2 * open_uniform(random) - 1;
    const double y = 2 * open_uniform(random) - 1;
    const double s = x * x + y * y;
    if (s > 1 || s == 0) continue;
    const double power = exponential(logarithm(s) * 2 / (2 * alpha - 1));
    const double beta = 0.5 + 0.5 * x / std::sqrt(s) * std::sqrt(std::max(0.0, 1 - power));
    return std::clamp(beta, 0.0, 1.0);
  }
}

}  // namespace

double draw_beta(double alpha, Philox& random) {
  return alpha <= 0.5 ? by_johnk(alpha, random) : by_ulrich(alpha, random);
}

}  // namespace headrace
