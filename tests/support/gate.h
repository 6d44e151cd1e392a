// A gate that holds back a stream's work until the test opens it.
#pragma once

#include <functional>
#include <latch>
#include <memory>

namespace headrace::test {

// Opens itself when it goes out of scope, so that a failing test does not hang: declare it after the streams.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  void open() noexcept {
    if (open_) return;
    open_ = true;
    latch_->count_down();
  }

  // A host function that blocks until the gate is open; may outlive the gate.
  std::function<void()> blocker() const {
    return [latch = latch_] { latch->wait(); };
  }

 private:
  std::shared_ptr<std::latch> latch_ = std::make_shared<std::latch>(1);
  bool open_ = false;
};

}  // namespace headrace::test
