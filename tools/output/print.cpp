#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/devices/workers.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

constexpr double kSecondsBetween = 0.2;

}  // namespace

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!terminal_ || (shown_ && since_shown_.seconds() < kSecondsBetween)) return;
  const std::string fitting =
      printable(text).substr(0, static_cast<std::size_t>(std::max(0, terminal_columns(stderr) - kSpareColumns)));
  std::fprintf(stderr, "\r\033[K%s", fitting.c_str());
  shown_ = true;
  since_shown_.restart();
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

int exit_status(const std::exception& error) noexcept {
  if (const auto* stopped = dynamic_cast<const StoppedBySignal*>(&error)) return 128 + stopped->signal();
  if (dynamic_cast<const EndedByAnother*>(&error) != nullptr) return kRestart;
  if (dynamic_cast<const WorkersDiffer*>(&error) != nullptr) return kRunFailed;
  return dynamic_cast<const ConfigError*>(&error) != nullptr ? kWrongUsage : kRunFailed;
}

}  // namespace headrace::tools
