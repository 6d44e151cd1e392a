#include <algorithm>
#include <mutex>
#include <vector>

#include "headrace/cache/lookup/record_table.h"

namespace headrace {
namespace {

class Numbers {
 public:
  // Never destroyed: threads may end after static objects.
  static Numbers& all() {
    static auto* const numbers = new Numbers;
    return *numbers;
  }

  std::size_t take() {
    const std::lock_guard lock(mutex_);
    const auto free = std::ranges::find(taken_, false);
    const auto number = static_cast<std::size_t>(free - taken_.begin());
    if (free == taken_.end()) taken_.push_back(false);
    taken_[number] = true;
    return number;
  }

  void give_back(std::size_t number) noexcept {
    const std::lock_guard lock(mutex_);
    taken_[number] = false;
  }

 private:
  std::mutex mutex_;
  std::vector<bool> taken_;  // by mutex_
};

struct Held {
  const std::size_t number = Numbers::all().take();
  ~Held() { Numbers::all().give_back(number); }
};

}  // namespace

std::size_t thread_number() noexcept {
  thread_local const Held held;
  return held.number;
}

}  // namespace headrace
