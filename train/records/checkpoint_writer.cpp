#include "headrace/train/records/checkpoint_writer.h"

#include <utility>

#include "headrace/devices/base/failures.h"

namespace headrace {

CheckpointWriter::CheckpointWriter(bool asynchronous) : asynchronous_(asynchronous) {
  if (asynchronous) thread_ = start_thread("writing checkpoints", [this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !work_.empty() || ending_; });
    if (work_.empty()) return;
    if (!failed_) {
      const std::function<void()>& work = work_.front();  // a deque does not move it while others are added
      lock.unlock();
      std::exception_ptr failure;
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failed_ = failure != nullptr;
      failure_ = failure;
    }
    work_.pop_front();
    changed_.notify_all();
  }
}

void CheckpointWriter::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!failure_) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  lock.unlock();
  std::rethrow_exception(failure);
}

std::size_t CheckpointWriter::unfinished() {
  std::unique_lock lock(mutex_);
  rethrow(lock);
  return work_.size();
}

void CheckpointWriter::add(std::function<void()> work) {
  if (!asynchronous_) return work();
  {
    std::unique_lock lock(mutex_);
    rethrow(lock);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void CheckpointWriter::wait_until(std::size_t left) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return work_.size() <= left; });
  rethrow(lock);
}

}  // namespace headrace
