// Remote data in a build without libcurl: URLs are recognised and refused.
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"

namespace headrace {

namespace remote {
namespace {

[[noreturn]] void refuse() {
  throw ConfigError("this Headrace was built without remote data: URLs cannot be read or written",
                    "install libcurl4-openssl-dev and libpugixml-dev, and configure with -DHEADRACE_REMOTE=on");
}

}  // namespace

void set_timing(const Timing&) {}
void set_fetch_cache(const FetchCacheOptions&) { refuse(); }
Counters counters() noexcept { return {}; }
std::string library() { return {}; }
Window::Window(std::uint64_t) {}
Window::~Window() = default;
Hold::Hold() = default;
Hold::~Hold() = default;
Look::Look() noexcept = default;
Look::~Look() = default;
AbandonableThread::AbandonableThread() noexcept = default;
const std::function<void()>* set_wait_poll(const std::function<void()>*) noexcept { return nullptr; }
void poll_while_waiting() {}
std::shared_ptr<Handle> open(const std::filesystem::path&) { refuse(); }
PathKind kind(const std::filesystem::path&) { refuse(); }
std::vector<DirectoryEntry> list(const std::filesystem::path&) { refuse(); }
FileIdentity identity(const std::filesystem::path&) { refuse(); }
std::vector<DirectoryEntry> list_below(const std::filesystem::path&) { refuse(); }
void will_open(std::span<const std::filesystem::path>) {}
void will_read_whole(const std::filesystem::path&, std::uint64_t) {}
void forget_whole() noexcept {}
void remove(const std::filesystem::path&) { refuse(); }
std::unique_ptr<Upload> create(const std::filesystem::path&) { refuse(); }

}  // namespace remote
}  // namespace headrace
