#include "headrace/devices/workers.h"

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_worker_describe(hr_worker* worker) {
  return guarded(__func__, [&] {
    const headrace::WorkerPlan plan = headrace::place_worker();
    const hr_worker answer = {.size = sizeof(hr_worker),
                              .rank = plan.rank,
                              .workers = plan.workers,
                              .local_rank = plan.local_rank,
                              .local_workers = plan.local_workers};
    headrace::c::write_struct(worker, answer, "hr_worker", "HR_WORKER_INIT");
  });
}

hr_status hr_worker_share(const hr_worker* worker, const hr_devices* devices, hr_loader_options* options) {
  return guarded(__func__, [&] {
    const auto of = HR_READ(hr_worker, HR_WORKER_INIT, &given(worker, "worker"));
    const std::int32_t local = given(devices, "devices").group->size();
    headrace::c::check_size(given(options, "options").size, "hr_loader_options", "HR_LOADER_OPTIONS_INIT");
    options->world_replicas = of.workers * local;
    options->world_first = of.rank * local;
  });
}
