#include "headrace/train/evaluator.h"

namespace headrace {

std::vector<View> mirrored_views() { return {{.weight = 0.5F}, {.weight = 0.5F, .shift = {.mirror = true}}}; }

std::vector<View> mirrored_and_shifted_views(int pixels) {
  std::vector<View> views;
  for (const bool mirror : {false, true}) {
    views.push_back({.weight = 0.25F, .shift = {.mirror = mirror}});
    for (const int by : {-pixels, pixels}) {
      views.push_back({.weight = 0.125F, .shift = {.down = by, .right = by, .mirror = mirror}});
    }
  }
  return views;
}

}  // namespace headrace
