#include "headrace/devices/base/temporary_name.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

// Taking a name out of its slot transfers ownership. A signal handler takes names and never frees them.
std::array<std::atomic<char*>, kMaxTemporaryNames> names;
static_assert(std::atomic<char*>::is_always_lock_free, "a signal handler must not wait for a lock");

}  // namespace

TemporaryName::TemporaryName(const std::filesystem::path& path) {
  // Absolute: the working directory may change.
  name_ = ::strdup(std::filesystem::absolute(path).c_str());
  if (name_ == nullptr) return;
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    char* none = nullptr;
    if (!names[slot].compare_exchange_strong(none, name_)) continue;
    slot_ = slot + 1;
    return;
  }
  std::free(std::exchange(name_, nullptr));
}

TemporaryName::TemporaryName(TemporaryName&& other) noexcept
    : slot_(std::exchange(other.slot_, 0)), name_(std::exchange(other.name_, nullptr)) {}

TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
  if (this != &other) {
    release();
    slot_ = std::exchange(other.slot_, 0);
    name_ = std::exchange(other.name_, nullptr);
  }
  return *this;
}

TemporaryName::~TemporaryName() { release(); }

void TemporaryName::release() noexcept {
  if (slot_ == 0) return;
  char* mine = name_;
  if (names[slot_ - 1].compare_exchange_strong(mine, nullptr)) std::free(name_);
  slot_ = 0;
  name_ = nullptr;
}

int remove_temporary_files() noexcept {
  int removed = 0;
  for (std::atomic<char*>& slot : names) {
    const char* name = slot.exchange(nullptr);
    if (name != nullptr && ::unlink(name) == 0) ++removed;
  }
  return removed;
}

}  // namespace headrace
