// Lets a program end a pass over all records that one of its threads waits for.
#include <memory>
#include <optional>

#include "headrace/bindings/c/library/errors.h"
#include "headrace/bindings/c/library/handles.h"
#include "headrace/pipeline/dataset.h"

namespace headrace::c {
namespace {

// This thread's poll; none before the first call.
thread_local std::optional<ScanPoll> scan_poll;

void set_scan_poll(hr_status (*look)(void* user), std::shared_ptr<void> user) {
  scan_poll.reset();
  if (look == nullptr) return;
  scan_poll.emplace([look, user = std::move(user)] { call_back("look", [&] { return look(user.get()); }); });
}

}  // namespace
}  // namespace headrace::c

hr_status hr_set_scan_poll(hr_status (*look)(void* user), hr_user user) {
  const bool in_callback = *headrace::c::current_function != '\0';
  return headrace::c::guarded(__func__, [&] {
    std::shared_ptr<void> shared = headrace::c::share(user);
    if (in_callback) {
      throw headrace::ConfigError("hr_set_scan_poll was called by a callback",
                                  "set it before the call that waits");
    }
    headrace::c::set_scan_poll(look, std::move(shared));
  });
}
