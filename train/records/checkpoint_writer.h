// Writes files beside the training, in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace headrace {

// One thread adds work; the writer's thread does it, or the caller at once if the writer is not asynchronous. An
// error ends the writing and is thrown once, by the next call except the destructor.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(bool asynchronous);
  ~CheckpointWriter();  // waits for the work added
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Returns the number of pieces of work that are not done yet.
  std::size_t unfinished();
  void add(std::function<void()> work);
  // Waits until at most `left` pieces remain.
  void wait_until(std::size_t left);

 private:
  void run();
  void rethrow(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> work_;  // the first is in progress
  std::exception_ptr failure_;
  bool failed_ = false, ending_ = false;

  bool asynchronous_;
  std::thread thread_;
};

}  // namespace headrace
