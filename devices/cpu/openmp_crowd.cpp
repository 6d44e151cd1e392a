#include "headrace/devices/cpu/openmp_crowd.h"

#include <omp.h>

namespace headrace {

OpenMpCrowd::~OpenMpCrowd() {
  dismissed_.store(true);
  dismissed_.notify_one();
  host_.join();
}

// A team exists from its first parallel region until the thread that began it ends. The region needs work in it:
// compilers drop an empty one.
void OpenMpCrowd::stand_by() {
#pragma omp parallel num_threads(1 + omp_get_num_procs())
  present_.fetch_add(1, std::memory_order_relaxed);
  dismissed_.wait(false);
}

}  // namespace headrace
