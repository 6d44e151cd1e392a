// The CPU's table of mathematics.
#pragma once

#include <memory>

#include "headrace/devices/kernels.h"

namespace headrace {

class CpuDevice;

// The kernels of `device`, which must outlive them.
std::unique_ptr<Kernels> create_cpu_kernels(CpuDevice& device);

}  // namespace headrace
