#include "headrace/pipeline/engine/engine_thread.h"

#include "headrace/devices/base/failures.h"

namespace headrace {

EngineThread::EngineThread(std::function<void(ThreadState&)> body, std::shared_ptr<ThreadState> state)
    : state_(std::move(state)) {
  state_->start();
  thread_ = start_thread("the input engine", [state = state_, body = std::move(body)] {
    try {
      body(*state);
    } catch (const Abandoned&) {
    }
    state->finish();
  });
}

void EngineThread::end(const Clock& clock, std::uint64_t deadline) {
  if (!thread_.joinable()) return;
  if (state_->end(clock, deadline)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace headrace
