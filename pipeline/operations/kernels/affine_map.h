// Maps of the plane that keep lines straight and parallel, between the pixels of two images. Pixel (x, y) covers
// the square from (x, y) to (x + 1, y + 1).
#pragma once

namespace headrace {

struct Point {
  double x = 0, y = 0;
};

// The map of (x, y) to (xx x + xy y + x0, yx x + yy y + y0).
struct AffineMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;

  Point operator()(const Point& p) const noexcept {
    return {.x = xx * p.x + xy * p.y + x0, .y = yx * p.x + yy * p.y + y0};
  }
};

// Returns the map back. REQUIRES: it does not fold the plane into a line.
inline AffineMap inverse_of(const AffineMap& map) noexcept {
  const double whole = map.xx * map.yy - map.xy * map.yx;
  AffineMap back{.xx = map.yy / whole, .xy = -map.xy / whole, .yx = -map.yx / whole, .yy = map.xx / whole};
  back.x0 = -(back.xx * map.x0 + back.xy * map.y0);
  back.y0 = -(back.yx * map.x0 + back.yy * map.y0);
  return back;
}

// The parts of a map that turns, scales, shears and moves an image around a point, in the terms of torchvision's
// affine().
struct AffineParts {
  double degrees = 0;  // clockwise
  double move_x = 0, move_y = 0;
  double scale = 1;
  double shear_x = 0, shear_y = 0;  // degrees, within -90 and 90
  Point center = {};
};
// Returns the map from the result to the image: where each point of the result comes from.
AffineMap source_map(const AffineParts& parts);

}  // namespace headrace
