#include "headrace/tools/runs/worker_run.h"

#include "headrace/devices/base/error.h"
#include "headrace/tools/output/exit_status.h"

namespace headrace::tools {

void run_with_workers(const WorkerFlags& flags, const std::function<void(const std::shared_ptr<Workers>&)>& work) {
  if (flags.standalone || plan_workers().alone()) return work(nullptr);
  std::shared_ptr<Workers> workers;
  try {
    workers = flags.open();
    work(workers);
  } catch (const WorkersDiffer&) {
    throw;  // the others know
  } catch (const StoppedBySignal&) {
    throw;  // all have stopped
  } catch (const EndedByAnother&) {
    throw;
  } catch (const std::exception& error) {
    const auto* named = dynamic_cast<const Error*>(&error);
    if (workers) workers->abort(named != nullptr ? named->message() : error.what());
    const auto* lost = dynamic_cast<const DeviceError*>(&error);
    const bool elsewhere =
        lost != nullptr && (lost->code() == ErrorCode::kCancelled || lost->code() == ErrorCode::kTimeout);
    if (elsewhere) throw EndedByAnother(*lost);
    throw;
  }
}

}  // namespace headrace::tools
