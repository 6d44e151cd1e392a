// Files written beside the training, in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace headrace {

// One thread gives work; a thread of the writer does it, or, where it is not asynchronous, the caller's at once.
// An error ends the writing and surfaces in the next call but the destructor, once.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(bool asynchronous);
  ~CheckpointWriter();  // waits for what was given
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Pieces of work that are not done yet.
  std::size_t unfinished();
  void add(std::function<void()> work);
  // Waits until at most so many pieces are left.
  void wait_until(std::size_t left);

 private:
  void run();
  void rethrow(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> work_;  // the first is being done
  std::exception_ptr failure_;
  bool failed_ = false, ending_ = false;

  bool asynchronous_;
  std::thread thread_;
};

}  // namespace headrace
