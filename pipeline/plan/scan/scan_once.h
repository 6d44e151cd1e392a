// The result of a pass over all records, found at the first request.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/scan/record_scan.h"

namespace headrace {

// Thread-safe. One thread at a time reads the records; the others wait for it, each with its ScanPoll.
template <typename Result>
class ScanOnce {
 public:
  // Returns the result of the first call of a `scan` that did not throw. Throws as it does, and as a ScanPoll; a
  // later call then scans again.
  const Result& get(const std::function<Result()>& scan) const {
    const Turn turn(*this);
    if (!result_) result_ = scan();
    return *result_;
  }

 private:
  class Turn {
   public:
    explicit Turn(const ScanOnce& of) : of_(of) {
      std::unique_lock lock(of.mutex_);
      while (!of.turn_ended_.wait_for(lock, kScanPause, [&] { return !of.taken_; })) {
        lock.unlock();
        ScanPoll::look();
        lock.lock();
      }
      of.taken_ = true;
    }
    ~Turn() {
      {
        const std::lock_guard lock(of_.mutex_);
        of_.taken_ = false;
      }
      of_.turn_ended_.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const ScanOnce& of_;
  };

  mutable std::mutex mutex_;
  mutable std::condition_variable turn_ended_;
  mutable bool taken_ = false;            // by mutex_; true while a thread reads the records
  mutable std::optional<Result> result_;  // set by that thread
};

}  // namespace headrace
