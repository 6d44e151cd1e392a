#include <utility>

#include "headrace/pipeline/dataset.h"

namespace headrace {
namespace {

thread_local const std::function<void()>* innermost = nullptr;

}  // namespace

ScanPoll::ScanPoll(std::function<void()> look) : look_(std::move(look)), outer_(innermost) {
  if (look_) innermost = &look_;
}

ScanPoll::~ScanPoll() { innermost = outer_; }

void ScanPoll::look() {
  if (innermost != nullptr) (*innermost)();
}

}  // namespace headrace
