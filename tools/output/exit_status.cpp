#include "headrace/tools/output/exit_status.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"

namespace headrace::tools {

int exit_status(const std::exception& error) noexcept {
  if (const auto* stopped = dynamic_cast<const StoppedBySignal*>(&error)) return 128 + stopped->signal();
  if (dynamic_cast<const EndedByAnother*>(&error) != nullptr) return kRestart;
  if (dynamic_cast<const WorkersDiffer*>(&error) != nullptr) return kRunFailed;
  return dynamic_cast<const ConfigError*>(&error) != nullptr ? kWrongUsage : kRunFailed;
}

}  // namespace headrace::tools
