// A thread of the engine that can always be ended: even while it is inside user code.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

class EngineThread {
 public:
  // `body` owns whatever it uses, for it may outlive this object inside user code.
  explicit EngineThread(std::function<void(ThreadState&)> body,
                        std::shared_ptr<ThreadState> state = std::make_shared<ThreadState>());
  EngineThread(EngineThread&&) = default;
  EngineThread& operator=(EngineThread&&) = delete;
  // end() must have been called.
  ~EngineThread() = default;

  // The body has been told to stop: waits for it, for ever while it runs our own code, until `deadline` at the
  // maximum while it is inside user code.
  void end(const Clock& clock, std::uint64_t deadline);

  const ThreadState& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<ThreadState> state_;
  std::thread thread_;
};

}  // namespace headrace
