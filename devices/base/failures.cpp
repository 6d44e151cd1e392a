#include <fmt/format.h>

#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

// oneTBB reports it only in the message.
bool is_out_of_threads(const std::exception& cause) noexcept {
  const auto* error = dynamic_cast<const std::system_error*>(&cause);
  if (error != nullptr) return error->code() == std::errc::resource_unavailable_try_again;
  return std::string_view(cause.what()).starts_with("pthread_create has failed");
}

Error no_thread_for(const std::string& what) {
  const std::string why = std::make_error_code(std::errc::resource_unavailable_try_again).message();
  return Error(ErrorCode::kIo, fmt::format("cannot start a thread for {}: {}", what, why),
               joined({"raise the limit on threads (ulimit -u, or pids.max of the container)",
                       "raise that on memory, which their stacks take (ulimit -v)",
                       advice("use fewer: {}", named("LoaderOptions::threads", "1"))}));
}

}  // namespace

Error no_memory_for(const std::string& what, std::uint64_t bytes) {
  return Error(
      ErrorCode::kOutOfMemory,
      bytes == 0 ? fmt::format("there is no memory left for {}", what)
                 : fmt::format("there is no memory left for {}, which takes {} bytes", what, bytes),
      joined({"close other programs or raise the limit on memory (ulimit -v, or that of the container)",
              "take a smaller global batch or fewer threads",
              advice("bound what the input takes with {}", named("LoaderOptions::memory_budget_bytes"))}));
}

bool is_bare_refusal(const std::exception& cause) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&cause) != nullptr || is_out_of_threads(cause);
}

Error explain_refusal(const std::exception& cause, const std::string& doing) {
  return is_out_of_threads(cause) ? no_thread_for(doing) : no_memory_for(doing);
}

std::thread start_thread(const std::string& what, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    if (!is_out_of_threads(error)) throw;
    throw no_thread_for(what);
  }
}

}  // namespace headrace
