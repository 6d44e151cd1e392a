#include "headrace/pipeline/sources/side_by_side.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

constexpr std::size_t kRemoteThreads = 128;  // as many as there are requests at once
constexpr std::size_t kMinThreads = 8;       // files may lie behind a network, too
constexpr std::chrono::milliseconds kPoll{50};

struct Stopped {};

class SideBySide {
 public:
  SideBySide(std::size_t files, std::size_t threads, const std::function<void(std::size_t)>& read)
      : files_(files), read_(read), ahead_(2 * threads) {
    try {
      for (std::size_t i = 0; i < threads; ++i)
        threads_.push_back(start_thread("reading files side by side", [this] { work(); }));
    } catch (...) {
      if (threads_.empty()) throw;  // fewer will do
    }
  }
  ~SideBySide() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  // Waits until the file was read. Throws what that threw.
  void wait_for(std::size_t file) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kPoll, [&] { return read_until_[file % ahead_] == file + 1; })) {
      lock.unlock();
      remote::poll_while_waiting();
      lock.lock();
    }
    if (const std::exception_ptr error = errors_[file % ahead_]) std::rethrow_exception(error);
    taken_ = file + 1;
    changed_.notify_all();
  }

 private:
  void work() noexcept {
    // A read that waits for a network looks here whether it is still wanted.
    const std::function<void()> look = [this] {
      const std::lock_guard lock(mutex_);
      if (stopped_) throw Stopped();
    };
    remote::set_wait_poll(&look);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || next_ == files_ || next_ < taken_ + ahead_; });
      if (stopped_ || next_ == files_) return;
      const std::size_t file = next_++;
      lock.unlock();
      std::exception_ptr error;
      try {
        read_(file);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      errors_[file % ahead_] = error;
      read_until_[file % ahead_] = file + 1;
      changed_.notify_all();
    }
  }

  const std::size_t files_;
  const std::function<void(std::size_t)>& read_;
  const std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // By mutex_.
  std::size_t next_ = 0, taken_ = 0;
  bool stopped_ = false;
  std::vector<std::size_t> read_until_ =
      std::vector<std::size_t>(ahead_);  // by file mod ahead_: one after the file
  std::vector<std::exception_ptr> errors_ = std::vector<std::exception_ptr>(ahead_);
  std::vector<std::thread> threads_;
};

}  // namespace

void read_side_by_side(std::size_t files, bool remote, const std::function<void(std::size_t)>& read,
                       const std::function<void(std::size_t)>& take) {
  const std::size_t processors = std::thread::hardware_concurrency();
  const std::size_t threads = std::min(files, remote ? kRemoteThreads : std::max(processors, kMinThreads));
  if (threads < 2) {
    for (std::size_t file = 0; file < files; ++file) {
      read(file);
      take(file);
    }
    return;
  }
  SideBySide reading(files, threads, read);
  for (std::size_t file = 0; file < files; ++file) {
    reading.wait_for(file);
    take(file);
  }
}

}  // namespace headrace
