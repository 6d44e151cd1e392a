#include "headrace/tools/runs/worker_run.h"

#include "headrace/devices/base/error.h"
#include "headrace/tools/output/exit_status.h"

namespace headrace::tools {

void run_with_workers(const std::function<std::shared_ptr<Workers>()>& open,
                      const std::function<void(const std::shared_ptr<Workers>&)>& work) {
  std::shared_ptr<Workers> workers;
  try {
    workers = open();
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
    if (const auto* lost = dynamic_cast<const WorkerLost*>(&error)) throw EndedByAnother(*lost);
    throw;
  }
}

}  // namespace headrace::tools
