// An engine thread that can always be ended, even while it is in user code.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

class EngineThread {
 public:
  // REQUIRES: `body` owns everything it uses, since it may outlive this object in user code.
  explicit EngineThread(std::function<void(ThreadState&)> body,
                        std::shared_ptr<ThreadState> state = std::make_shared<ThreadState>());
  EngineThread(EngineThread&&) = default;
  EngineThread& operator=(EngineThread&&) = delete;
  // REQUIRES: end() was called.
  ~EngineThread() = default;

  // Waits for the body: indefinitely while it runs our own code, at most until `deadline` while it is in user
  // code. REQUIRES: the body has been told to stop.
  void end(const Clock& clock, std::uint64_t deadline);

  const ThreadState& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<ThreadState> state_;
  std::thread thread_;
};

}  // namespace headrace
