#include "headrace/pipeline/operations/kernels/affine_map.h"

#include "headrace/pipeline/operations/kernels/portable_math.h"

namespace headrace {

// The image is sheared along y, then along x, turned, scaled and moved.
AffineMap source_map(const AffineParts& parts) {
  const SineCosine turned = sine_cosine(parts.degrees - parts.shear_y);
  const SineCosine whole = sine_cosine(parts.degrees);
  const SineCosine x = sine_cosine(parts.shear_x), y = sine_cosine(parts.shear_y);
  const double tangent = x.sine / x.cosine;
  const double a = turned.cosine / y.cosine, c = turned.sine / y.cosine;
  const double b = -a * tangent - whole.sine, d = -c * tangent + whole.cosine;
  AffineMap map{.xx = d / parts.scale, .xy = -b / parts.scale, .yx = -c / parts.scale, .yy = a / parts.scale};
  const Point from{.x = parts.center.x + parts.move_x, .y = parts.center.y + parts.move_y};
  map.x0 = parts.center.x - (map.xx * from.x + map.xy * from.y);
  map.y0 = parts.center.y - (map.yx * from.x + map.yy * from.y);
  return map;
}

}  // namespace headrace
