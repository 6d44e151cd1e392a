#include "headrace/devices/cpu/openmp_waiting.h"

#include <omp.h>

#include <chrono>
#include <cstdlib>
#include <system_error>

#include "headrace/devices/cpu/other_load.h"

namespace headrace {
namespace {

constexpr std::chrono::milliseconds kInterval{250};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

OpenMpOversubscription::~OpenMpOversubscription() {
  dismissed_.store(true);
  dismissed_.notify_one();
  host_.join();
}

// A team exists from its first parallel region until the thread that began it ends. The region must not be empty:
// compilers drop an empty one.
void OpenMpOversubscription::stand_by() {
#pragma omp parallel num_threads(1 + omp_get_num_procs())
  present_.fetch_add(1, std::memory_order_relaxed);
  dismissed_.wait(false);
}

bool SleepDecision::update(double other_processors) noexcept {
  const bool loaded = other_processors >= kOtherLoad;
  opposed_ = loaded == sleeps_ ? 0 : opposed_ + 1;
  if (opposed_ == (sleeps_ ? 4 : 2)) {
    sleeps_ = loaded;
    opposed_ = 0;
  }
  return sleeps_;
}

std::shared_ptr<OpenMpWaiting> OpenMpWaiting::create() {
  if (is_set("OMP_WAIT_POLICY") || is_set("GOMP_SPINCOUNT")) return nullptr;
  return std::make_shared<OpenMpWaiting>();
}

OpenMpWaiting::~OpenMpWaiting() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  if (watcher_.joinable()) watcher_.join();
}

void OpenMpWaiting::begin() noexcept {
  std::call_once(begun_, [this] {
    try {
      watcher_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {  // see begin()
    }
  });
}

void OpenMpWaiting::watch() {
  try {
    OtherLoad others;
    SleepDecision decision;
    std::optional<OpenMpOversubscription> oversubscription;
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, kInterval, [this] { return stopped_; })) {
      const bool sleeps = decision.update(others.processors());
      if (sleeps && !oversubscription) oversubscription.emplace();
      if (!sleeps) oversubscription.reset();
    }
  } catch (const std::exception&) {  // out of threads or memory: OpenMP waits as usual
  }
}

}  // namespace headrace
