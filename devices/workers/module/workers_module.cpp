// The module's entry point.
#include "headrace/devices/workers/module/joined_workers.h"

namespace headrace {
namespace {

class GrpcAndGloo final : public WorkerModule {
 public:
  std::unique_ptr<WorkerTransport> join(const WorkerPlan& plan, const WorkerOptions& options,
                                        const std::string& build) const override {
    return std::make_unique<JoinedWorkers>(plan, options, build);
  }
};

}  // namespace
}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::WorkerModule* headrace_workers(int abi_version) {
  static const headrace::GrpcAndGloo module;
  return abi_version == headrace::kWorkerAbiVersion ? &module : nullptr;
}
