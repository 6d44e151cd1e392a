// The order in which requests start that wait for a place.
#include "headrace/devices/base/remote/http_client.h"

#include <condition_variable>
#include <mutex>

#include "headrace/tests/support/http_server.h"
#include "headrace/tests/support/test.h"

namespace headrace::remote {
namespace {

using test::HttpServer;

// What calls share: the numbers of those that were sent, in order, and a gate that lets the others wait.
struct Sent {
  std::mutex mutex;
  std::condition_variable changed;
  // By mutex.
  std::vector<int> numbers;
  int over = 0;

  void wait_for(int calls) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return over == calls; });
  }
};

// A large range of a file, of which nothing is kept.
class NumberedCall final : public HttpCall {
 public:
  NumberedCall(Sent& sent, std::string url, int number) : sent_(sent), url_(std::move(url)), number_(number) {}

  HttpRequest request() override {
    const std::lock_guard lock(sent_.mutex);
    sent_.numbers.push_back(number_);
    return {.url = url_, .range = std::pair<std::uint64_t, std::uint64_t>(0, (16U << 20) - 1)};
  }
  void begin(const HttpAnswer&) override {}
  bool take(std::span<const std::byte>) override { return true; }
  std::optional<std::chrono::nanoseconds> end(const HttpAnswer&) override {
    const std::lock_guard lock(sent_.mutex);
    ++sent_.over;
    sent_.changed.notify_all();
    return std::nullopt;
  }

 private:
  Sent& sent_;
  std::string url_;
  int number_;
};

TEST(HttpClient, StartsWaitingCallsAsTheyAreDue) {
  HttpServer server;
  server.serve("/file", std::string(std::size_t{64} << 10, 'x'));
  server.slow_down(std::chrono::milliseconds(200), 0);
  Sent sent;
  std::vector<std::shared_ptr<NumberedCall>> calls;
  const auto put = [&](int number, std::uint64_t due) {
    calls.push_back(std::make_shared<NumberedCall>(sent, server.url() + "/file", number));
    submit(calls.back(), due);
  };
  for (int number = 0; number < 4; ++number) put(number, kNow);  // as many as always have a place
  put(4, due_after(3000));
  put(5, due_after(1000));
  put(6, due_after(5000));
  put(7, due_after(2000));
  put(8, due_after(1000));
  expedite(*calls[6]);
  sent.wait_for(9);
  EXPECT_EQ(std::vector(sent.numbers.begin() + 4, sent.numbers.end()), (std::vector{6, 5, 8, 7, 4}));
}

}  // namespace
}  // namespace headrace::remote
