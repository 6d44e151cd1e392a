#include "headrace/pipeline/operations/machinery/pixel_pass.h"

#include "headrace/pipeline/operations/machinery/field_checks.h"

namespace headrace {

PixelPass::PixelPass(const Field& input, const PassAbilities& who)
    : abilities(who),
      from_type(input.dtype),
      to_type(input.dtype),
      image(input.shape.rank() == 3),
      from_layout(layout_of(input)),
      to_layout(from_layout),
      channels(image ? channels_of(input) : 1) {}

bool PixelPass::add(const OperationDefinition& operation, const OperationPlace& place) {
  if (image && !flat && layout_of(place.before) != to_layout) return false;  // layout_is() says another
  PixelPass with = *this;
  if (!operation.join(with, place)) return false;
  // Holes are cut into the result: any operation after one would not apply to it.
  const bool cut = with.holes.size() > holes.size();
  if (!holes.empty() && !cut) return false;
  *this = std::move(with);
  return true;
}

}  // namespace headrace
