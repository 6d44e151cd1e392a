// Muon's step on one matrix, its products through oneDNN. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/onednn_operands.h"

namespace headrace {

// Products are f32: they are well below a percent of a step's work.
BoundKernel muon_update(OneDnn&, const MuonMatrix&, const MuonOptions&, const StepScalars* scalars);

}  // namespace headrace
