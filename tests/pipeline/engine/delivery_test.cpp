#include "headrace/pipeline/engine/delivery.h"
#include "headrace/tests/pipeline/engine/parts.h"

namespace headrace::test {
namespace {

class SomethingBusy final : public Delivery::StallReport {
 public:
  std::string why_not_out(const SlotMark::Value& mark) const override {
    return "waiting for batch " + std::to_string(mark.sequence);
  }
};

// Parts with consumers.
struct Delivering {
  Delivering(int replicas, std::int64_t global, const LoaderOptions& options)
      : parts(cpu_replicas(replicas), 20, global, options), delivery(parts.run, *parts.ring, busy, nullptr) {}

  // Of a thread that waits as long as it may.
  std::string complaint_of(int replica) {
    auto complaint = std::async(std::launch::async, [&]() -> std::string {
      try {
        delivery.next(replica);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kTimeout);
        return error.what();
      }
      return "none";
    });
    parts.clock.await_waiting(1);
    parts.clock.advance(std::chrono::seconds(30));
    return complaint.get();
  }

  Parts parts;
  SomethingBusy busy;
  Delivery delivery;
};

TEST(Delivery, GivesEachReplicaItsShareInOrder) {
  Delivering run(2, 5, {.prefetch = 1});
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) run.parts.make_ready(sequence);
  std::vector<std::vector<std::uint64_t>> given;
  for (int step = 0; step < 2; ++step) {
    for (int replica = 0; replica < 2; ++replica) {
      const auto batch = run.delivery.next(replica);
      EXPECT_EQ(batch->position().sequence, static_cast<std::uint64_t>(step));
      EXPECT_EQ(batch->position().first_row, replica == 0 ? 0 : 2);
      given.emplace_back(batch->records().begin(), batch->records().end());
    }
  }
  EXPECT_THAT(given,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5, 6), ElementsAre(7, 8, 9)));
  EXPECT_EQ(run.delivery.position(), 2U);
}

TEST(Delivery, CountsABatchAsTakenWhenEveryReplicaHasIt) {
  Delivering run(2, 5, {.prefetch = 1});
  run.parts.make_ready(0);
  const auto first = run.delivery.next(0);
  EXPECT_EQ(run.delivery.position(), 0U);
  const auto second = run.delivery.next(1);
  EXPECT_EQ(run.delivery.position(), 1U);
}

TEST(Delivery, SaysWhatItWaitsFor) {
  Delivering run(2, 5, {.prefetch = 0, .stall_timeout_seconds = 30});
  run.parts.write(0);
  EXPECT_THAT(run.complaint_of(0), HasSubstr("batch 0 was not there after 30 s: waiting for batch 0"));
  EXPECT_EQ(run.delivery.consumers()[0]->wait_ns.load(), 30'000'000'000U);
  run.parts.ring->complete(run.parts.ring->slot_of(0));
  auto first = run.delivery.next(0);
  EXPECT_THAT(run.complaint_of(0), HasSubstr("replica 1 has not taken batch 0"));
  auto second = run.delivery.next(1);
  EXPECT_THAT(run.complaint_of(0), HasSubstr("replica 1 holds batch 0"));
  second.reset();
  EXPECT_THAT(run.complaint_of(0), HasSubstr("slots are held by the consumer"));
  first.reset();
  EXPECT_THAT(run.complaint_of(0), HasSubstr("consumer's stream"));
}

TEST(Delivery, RaisesAFailureOnceInItsPlace) {
  Delivering run(1, 5, {.prefetch = 2});
  run.parts.make_ready(0);
  run.parts.write(1);
  Slot& slot = run.parts.ring->slot_of(1);
  slot.fail({.what = {.code = ErrorCode::kOutOfMemory, .cause = "too large"}});
  run.parts.ring->complete(slot);
  EXPECT_TRUE(run.delivery.next(0));
  for (const ErrorCode expected : {ErrorCode::kOutOfMemory, ErrorCode::kCancelled}) {
    const Error error = error_of([&] { run.delivery.next(0); });
    EXPECT_EQ(error.code(), expected);
    EXPECT_THAT(error.what(), HasSubstr("too large"));
  }
}

TEST(Delivery, EndsWithTheStreamAndWithAStop) {
  Delivering run(1, 20, {.prefetch = 0});
  run.parts.make_ready(0);
  EXPECT_TRUE(run.delivery.next(0));
  EXPECT_FALSE(run.delivery.next(0));
  EXPECT_THROW(run.delivery.next(1), ConfigError);
  Delivering stopped(1, 5, {.prefetch = 0});
  stopped.parts.ring->stop();
  EXPECT_THROW(stopped.delivery.next(0), Error);
}

}  // namespace
}  // namespace headrace::test
