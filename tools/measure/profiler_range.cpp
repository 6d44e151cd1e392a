#include "headrace/tools/measure/profiler_range.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

using DriverCall = int (*)();  // cuProfilerStart() and cuProfilerStop(): 0 is success

DriverCall driver_call(const char* name) {
  const SharedModule driver = open_shared_module("libcuda.so.1", name);
  if (driver.entry == nullptr) {
    throw ConfigError("--profile-epoch needs NVIDIA's driver: " + driver.missing,
                      "run it on a machine with a GPU, under ncu or nsys");
  }
  return reinterpret_cast<DriverCall>(driver.entry);
}

// Nothing is trained differently where the driver refuses: the profiler's own report is empty then.
void call(DriverCall function, const char* name) {
  if (const int status = function(); status != 0) {
    print(stderr, "headrace: warning: {} failed with CUDA error {}; is the fit's device a GPU?\n", name, status);
  }
}

}  // namespace

Callback profiled_epoch(int epoch) {
  const DriverCall start = driver_call("cuProfilerStart"), stop = driver_call("cuProfilerStop");
  return {.on_train_begin =
              [=](FitControl&) {
                if (epoch == 1) call(start, "cuProfilerStart");
              },
          .on_epoch_end =
              [=](const EpochReport& report, FitControl&) {
                if (report.epoch + 1 == epoch) call(stop, "cuProfilerStop");
                if (report.epoch + 2 == epoch) call(start, "cuProfilerStart");
              }};
}

}  // namespace headrace::tools
