// Random numbers of the symmetric beta distribution.
#pragma once

#include "headrace/devices/base/rng.h"

namespace headrace {

// Draws from Beta(alpha, alpha), alpha > 0, in [0, 1], with exact IEEE operations only, so that every machine
// draws the same. For alpha <= 1/2 Jöhnk's method: x = u^(1/alpha), y = v^(1/alpha) until x + y <= 1, then x / (x
// + y), all in logarithms. Above, Ulrich's: a point drawn in the unit disc gives the cosine of a uniform angle
// and, by its squared radius s, an independent uniform number; 1/2 + cos sqrt(1 - s^(2 / (2 alpha - 1))) / 2.
double draw_beta(double alpha, Philox& random);

}  // namespace headrace
