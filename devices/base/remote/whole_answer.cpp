#include "headrace/devices/base/remote/whole_answer.h"

#include <algorithm>

#include "headrace/devices/base/remote/waiting.h"

namespace headrace::remote {

std::shared_ptr<WholeAnswer> WholeAnswer::send(HttpRequest request, Asked asked, std::size_t max_body) {
  auto call = std::make_shared<WholeAnswer>(std::move(request), std::move(asked), max_body);
  submit(call, false);
  return call;
}

const WholeAnswer::Result& WholeAnswer::wait() {
  std::unique_lock lock(mutex_);
  wait_until(changed_, lock, [&] { return over_; });
  return result_;
}

void WholeAnswer::begin(const HttpAnswer&) { result_.body.clear(); }

bool WholeAnswer::take(std::span<const std::byte> bytes) {
  const std::size_t count = std::min(bytes.size(), max_body_ - result_.body.size());
  result_.body.insert(result_.body.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  return count == bytes.size();
}

std::optional<std::chrono::nanoseconds> WholeAnswer::end(const HttpAnswer& answer) {
  const bool good =
      answer.trouble.empty() && (answer.status == 200 || answer.status == 206 || answer.status == 416);
  const bool again = answer.trouble.empty() ? status_may_pass(answer.status) : answer.may_pass;
  std::optional<std::chrono::nanoseconds> pause;
  if (!good && again) pause = retries_.next_pause(answer.retry_after);
  if (pause) return pause;
  {
    const std::lock_guard lock(mutex_);
    result_.answer = answer;
    if (!good) result_.error = refusal(asked_, answer, again ? retries_.given_up() : "");
    over_ = true;
  }
  changed_.notify_all();
  return std::nullopt;
}

}  // namespace headrace::remote
