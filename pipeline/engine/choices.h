// What the engine decided for itself.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/pipeline/loader.h"

namespace headrace {

// Thread-safe.
class Choices {
 public:
  // Replaces what was said about the same thing.
  void note(Choice choice) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(choices_, choice.what, &Choice::what);
    if (known != choices_.end()) {
      *known = std::move(choice);
    } else {
      choices_.push_back(std::move(choice));
    }
  }

  std::vector<Choice> list() const {
    const std::lock_guard lock(mutex_);
    return choices_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Choice> choices_;  // by mutex_
};

}  // namespace headrace
