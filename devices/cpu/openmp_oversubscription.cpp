#include "headrace/devices/cpu/openmp_oversubscription.h"

#include <omp.h>

namespace headrace {

OpenMpOversubscription::~OpenMpOversubscription() {
  dismissed_.store(true);
  dismissed_.notify_one();
  host_.join();
}

// A team exists from its first parallel region until the thread that began it ends. The region needs work in it:
// compilers drop an empty one.
void OpenMpOversubscription::stand_by() {
#pragma omp parallel num_threads(1 + omp_get_num_procs())
  present_.fetch_add(1, std::memory_order_relaxed);
  dismissed_.wait(false);
}

}  // namespace headrace
