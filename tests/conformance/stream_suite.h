// What every Stream and Event must do when all goes well.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "headrace/tests/conformance/device_fixture.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {

template <typename Target>
class StreamSuite : public StreamFixture<Target> {};
TYPED_TEST_SUITE_P(StreamSuite);

TYPED_TEST_P(StreamSuite, WorkRunsInTheOrderOfSubmission) {
  std::vector<int> seen;
  std::vector<int> wanted(3000);
  std::iota(wanted.begin(), wanted.end(), 0);
  for (const int i : wanted) this->a_->call([&seen, i] { seen.push_back(i); });
  this->a_->synchronize();
  EXPECT_EQ(seen, wanted);
}

TYPED_TEST_P(StreamSuite, SubmittingBeyondTheQueueLosesNothing) {
  Gate gate;
  std::atomic<int> count = 0;
  this->a_->call(gate.blocker());
  std::thread opener([&] {
    this->linger();
    gate.open();
  });
  for (int i = 0; i < 5000; ++i) this->a_->call([&] { ++count; });
  opener.join();
  this->a_->synchronize();
  EXPECT_EQ(count, 5000);
}

TYPED_TEST_P(StreamSuite, CopiesReachDevicePinnedAndPageableMemory) {
  constexpr std::size_t kBytes = 100'003;
  std::vector<unsigned char> host(kBytes);
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(0));
  const Buffer pinned = this->device().allocate_pinned(kBytes);
  const Buffer one = this->device().allocate(kBytes);
  const Buffer two = this->device().allocate(kBytes);
  this->a_->copy(pinned.data(), host.data(), kBytes);
  this->a_->copy(one.data(), pinned.data(), kBytes);
  this->a_->copy(two.data(), one.data(), kBytes);
  EXPECT_EQ(this->template download<unsigned char>(*this->a_, two), host);
  this->a_->fill(two.data(), 0xA5, kBytes - 1);
  const auto filled = this->template download<unsigned char>(*this->a_, two);
  EXPECT_EQ(filled[0], 0xA5);
  EXPECT_EQ(filled[kBytes - 2], 0xA5);
  EXPECT_EQ(filled[kBytes - 1], host[kBytes - 1]);
}

// With nothing to copy in between, alone or many; run and captured.
TYPED_TEST_P(StreamSuite, CopiesTogetherAreAllMade) {
  constexpr std::size_t kBytes = 4096;
  const Buffer pinned = this->device().allocate_pinned(kBytes), back = this->device().allocate_pinned(kBytes);
  const Buffer one = this->device().allocate(kBytes), two = this->device().allocate(kBytes);
  std::vector<unsigned char> host(kBytes);
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(0));
  std::memcpy(pinned.data(), host.data(), kBytes);
  const auto half = [](const Buffer& to, const Buffer& from, std::size_t at) {
    return MemoryCopy{.to = to.data() + at, .from = from.data() + at, .bytes = kBytes / 2};
  };
  const std::vector<MemoryCopy> in{half(one, pinned, 0), {}, half(one, pinned, kBytes / 2)};
  const std::vector<MemoryCopy> over{half(two, one, 0), half(back, one, 0), half(back, one, kBytes / 2)};
  const auto submit = [&] {
    this->a_->copy_together({});
    this->a_->copy_together(in);
    this->a_->copy_together(over);
    this->a_->copy_together(std::vector{half(two, one, kBytes / 2)});
  };
  const auto expect_copied = [&] {
    EXPECT_EQ(this->template download<unsigned char>(*this->a_, two), host);
    EXPECT_EQ(std::memcmp(back.data(), host.data(), kBytes), 0);
    std::memset(back.data(), 0, kBytes);
    this->a_->fill(two.data(), 0, kBytes);
    this->a_->synchronize();  // before the buffers go
  };
  submit();
  expect_copied();
  this->a_->begin_capture();
  submit();
  const std::unique_ptr<CapturedWork> work = this->a_->end_capture();
  this->a_->launch(*work);
  expect_copied();
}

TYPED_TEST_P(StreamSuite, ZeroBytesAreNoWork) {
  this->a_->copy(nullptr, nullptr, 0);
  this->a_->fill(nullptr, 1, 0);
  EXPECT_NO_THROW(this->a_->synchronize());
}

TYPED_TEST_P(StreamSuite, AnEventNeverRecordedIsComplete) {
  const auto event = this->device().create_event();
  EXPECT_TRUE(event->ready());
  event->wait();
  this->a_->wait(*event);
  EXPECT_NO_THROW(this->a_->synchronize());
}

TYPED_TEST_P(StreamSuite, AnEventHoldsBackAnotherStreamUntilItsWorkIsDone) {
  const auto first = this->device().create_event();
  const auto second = this->device().create_event();
  const Buffer data = this->device().allocate(4);
  Gate gate;
  this->a_->call(gate.blocker());
  this->a_->fill(data.data(), 7, 4);
  this->a_->record(*first);
  this->b_->wait(*first);
  this->b_->record(*second);
  this->linger();
  EXPECT_FALSE(first->ready());
  EXPECT_FALSE(second->ready());
  gate.open();
  second->wait();
  EXPECT_TRUE(first->ready());
  EXPECT_EQ(this->template download<unsigned char>(*this->b_, data), std::vector<unsigned char>(4, 7));
}

TYPED_TEST_P(StreamSuite, AnEventAlreadyCompleteHoldsNothingBack) {
  const auto event = this->device().create_event();
  this->a_->record(*event);
  event->wait();
  Gate gate;
  this->a_->call(gate.blocker());
  const auto later = this->device().create_event();
  this->b_->wait(*event);
  this->b_->record(*later);
  EXPECT_TRUE(this->eventually(*later));
}

TYPED_TEST_P(StreamSuite, RecordingAgainDoesNotMoveAWaitAlreadySubmitted) {
  const auto event = this->device().create_event();
  const auto passed = this->device().create_event();
  this->a_->record(*event);
  this->b_->wait(*event);
  this->b_->record(*passed);
  Gate gate;
  this->a_->call(gate.blocker());
  this->a_->record(*event);
  EXPECT_TRUE(this->eventually(*passed));
  EXPECT_FALSE(event->ready());
}

TYPED_TEST_P(StreamSuite, ALaterRecordElsewhereDoesNotReleaseAWaitForTheFormerOne) {
  const auto c = this->device().create_stream();
  const auto event = this->device().create_event();
  const auto passed = this->device().create_event();
  Gate gate;
  this->a_->call(gate.blocker());
  this->a_->record(*event);
  this->b_->wait(*event);
  this->b_->record(*passed);
  c->record(*event);
  EXPECT_TRUE(this->eventually(*event));
  this->linger();
  EXPECT_FALSE(passed->ready());
  gate.open();
  EXPECT_TRUE(this->eventually(*passed));
}

TYPED_TEST_P(StreamSuite, AStreamThatFollowsAnotherWaitsForItsWork) {
  const auto passed = this->device().create_event();
  const auto later = this->device().create_event();
  const Buffer data = this->device().allocate(4);
  Gate gate;
  this->a_->call(gate.blocker());
  this->a_->fill(data.data(), 7, 4);
  this->b_->follow(*this->a_);
  this->b_->record(*passed);
  this->linger();
  EXPECT_FALSE(passed->ready());
  gate.open();
  EXPECT_EQ(this->template download<unsigned char>(*this->b_, data), std::vector<unsigned char>(4, 7));
  Gate second;
  this->a_->follow(*this->b_);
  this->a_->follow(*this->a_);
  this->a_->call(second.blocker());
  this->b_->record(*later);
  EXPECT_TRUE(this->eventually(*later)) << "it waits for what came before, not for what comes after";
}

// A copy on `b` from what `a` wrote before, beside a fill on `a`; then both on `a`.
TYPED_TEST_P(StreamSuite, AStreamThatFollowsACaptureIsPartOfIt) {
  const Buffer from = this->device().allocate(64);
  const Buffer to = this->device().allocate(128);
  this->a_->begin_capture();
  this->a_->fill(from.data(), 3, 32);
  this->b_->follow(*this->a_);
  this->b_->copy(to.data(), from.data(), 64);
  this->a_->fill(to.data() + 64, 9, 64);
  this->a_->follow(*this->b_);
  this->a_->copy(from.data(), to.data() + 32, 64);
  const auto work = this->a_->end_capture();
  this->b_->synchronize();
  for (unsigned char value = 1; value <= 50; ++value) {
    this->a_->fill(from.data(), value, 64);
    this->a_->launch(*work);
    std::vector<unsigned char> wanted(64, 9);
    std::fill_n(wanted.begin(), 32, value);
    ASSERT_EQ(this->template download<unsigned char>(*this->a_, from), wanted);
  }
  this->b_->fill(to.data(), 1, 128);  // the capture has ended for it, too
  EXPECT_EQ(this->template download<unsigned char>(*this->b_, to), std::vector<unsigned char>(128, 1));
}

// Which of two kernels starts first may differ, what waits for what may not.
TYPED_TEST_P(StreamSuite, AnUrgentStreamOrdersItsWorkAsAnyOther) {
  const auto urgent = this->device().create_urgent_stream();
  const Buffer from = this->device().allocate(64);
  const Buffer to = this->device().allocate(64);
  urgent->begin_capture();
  urgent->fill(from.data(), 3, 64);
  this->a_->follow(*urgent);
  this->a_->copy(to.data(), from.data(), 64);
  urgent->follow(*this->a_);
  urgent->fill(from.data(), 4, 64);
  const auto work = urgent->end_capture();
  for (int launch = 0; launch < 20; ++launch) {
    urgent->fill(to.data(), 0, 64);
    urgent->launch(*work);
    ASSERT_EQ(this->template download<unsigned char>(*urgent, to), std::vector<unsigned char>(64, 3));
    ASSERT_EQ(this->template download<unsigned char>(*urgent, from), std::vector<unsigned char>(64, 4));
  }
}

TYPED_TEST_P(StreamSuite, WithinALaunchStreamsRunSideBySide) {
  const auto reached = this->device().create_event();
  for (const bool repeated : {false, true}) {
    Gate gate;
    this->a_->begin_capture();
    this->b_->follow(*this->a_);
    this->b_->record(*reached);
    this->a_->call(gate.blocker());
    this->a_->follow(*this->b_);
    const auto work = this->a_->end_capture();
    this->a_->launch(*work);
    EXPECT_TRUE(this->eventually(*reached)) << repeated;
    gate.open();
    this->a_->synchronize();
  }
}

TYPED_TEST_P(StreamSuite, WithinALaunchAStreamMayFollowOften) {
  int counter = 0;  // touched by both streams: follow() is all that orders them
  bool in_order = true;
  this->a_->begin_capture();
  for (int i = 0; i < 20; ++i) {
    this->a_->call([&, i] { in_order = in_order && counter++ % 40 == 2 * i; });
    this->b_->follow(*this->a_);
    this->b_->call([&, i] { in_order = in_order && counter++ % 40 == 2 * i + 1; });
    this->a_->follow(*this->b_);
  }
  const auto work = this->a_->end_capture();
  for (int launch = 0; launch < 100; ++launch) this->a_->launch(*work);
  this->a_->synchronize();
  EXPECT_TRUE(in_order);
  EXPECT_EQ(counter, 4000);
}

TYPED_TEST_P(StreamSuite, TimedEventsTellTheTimeBetweenThem) {
  const auto begin = this->device().create_timed_event();
  const auto middle = this->device().create_timed_event();
  const auto end = this->device().create_timed_event();
  constexpr std::chrono::milliseconds kWork{20};
  this->a_->record(*begin);
  this->a_->call([&] { std::this_thread::sleep_for(kWork); });
  this->a_->record(*middle);
  this->b_->wait(*middle);  // across streams
  this->b_->record(*end);
  end->wait();
  const std::int64_t work = middle->ns_since(*begin).value();
  EXPECT_GE(work, 19'000'000);
  EXPECT_LT(work, 10'000'000'000);
  EXPECT_GE(end->ns_since(*middle).value(), 0);
  EXPECT_NEAR(static_cast<double>(end->ns_since(*begin).value()),
              static_cast<double>(work + end->ns_since(*middle).value()), 10'000.0);
  EXPECT_EQ(begin->ns_since(*begin), 0);
}

TYPED_TEST_P(StreamSuite, AnEventTellsNoTimeUnlessItIsTimedRecordedAndComplete) {
  const auto timed = this->device().create_timed_event();
  const auto other = this->device().create_timed_event();
  const auto plain = this->device().create_event();
  EXPECT_EQ(timed->ns_since(*other), std::nullopt) << "never recorded";
  this->a_->record(*timed);
  this->a_->record(*plain);
  this->a_->synchronize();
  EXPECT_EQ(timed->ns_since(*other), std::nullopt) << "the earlier one was never recorded";
  EXPECT_EQ(other->ns_since(*timed), std::nullopt) << "the later one was never recorded";
  EXPECT_EQ(plain->ns_since(*timed), std::nullopt);
  EXPECT_EQ(timed->ns_since(*plain), std::nullopt);
  Gate gate;
  this->a_->call(gate.blocker());
  this->a_->record(*other);
  EXPECT_EQ(other->ns_since(*timed), std::nullopt) << "not complete";
  gate.open();
  other->wait();
  EXPECT_GT(other->ns_since(*timed).value(), 0);
  EXPECT_NO_THROW(this->a_->synchronize()) << "asking too early is no error";
}

TYPED_TEST_P(StreamSuite, CapturedWorkDoesTheSameAtEveryLaunch) {
  const Buffer from = this->device().allocate(64);
  const Buffer to = this->device().allocate(64);
  int calls = 0;
  this->a_->begin_capture();
  this->a_->copy(to.data(), from.data(), 64);
  this->a_->fill(to.data(), 9, 16);
  this->a_->call([&] { ++calls; });
  const auto work = this->a_->end_capture();
  this->a_->synchronize();
  EXPECT_EQ(calls, 0) << "capturing ran the work";

  for (unsigned char value = 1; value <= 3; ++value) {
    this->a_->fill(from.data(), value, 64);  // what the pointers point to changes between launches
    this->a_->launch(*work);
    std::vector<unsigned char> wanted(64, value);
    std::fill_n(wanted.begin(), 16, static_cast<unsigned char>(9));
    EXPECT_EQ(this->template download<unsigned char>(*this->a_, to), wanted);
    EXPECT_EQ(calls, value);
  }
}

TYPED_TEST_P(StreamSuite, CapturedWorkMayBeLaunchedOnAnotherStream) {
  int calls = 0;
  this->a_->begin_capture();
  this->a_->call([&] { ++calls; });
  const auto work = this->a_->end_capture();
  this->b_->launch(*work);
  this->b_->launch(*work);
  this->b_->synchronize();
  EXPECT_EQ(calls, 2);
}

TYPED_TEST_P(StreamSuite, CapturedEventsStandForTheirLaunch) {
  const auto start = this->device().create_event();
  const auto done = this->device().create_event();
  this->b_->begin_capture();
  this->b_->wait(*start);
  this->b_->record(*done);
  const auto work = this->b_->end_capture();
  EXPECT_TRUE(done->ready()) << "capturing recorded the event";

  for (int launch = 0; launch < 3; ++launch) {
    Gate gate;
    this->a_->call(gate.blocker());
    this->a_->record(*start);
    this->b_->launch(*work);
    this->linger();
    EXPECT_FALSE(done->ready()) << launch;
    gate.open();
    EXPECT_TRUE(this->eventually(*done)) << launch;
  }
}

TYPED_TEST_P(StreamSuite, TenThousandHandoversKeepTheOrder) {
  const auto there = this->device().create_event();
  const auto back = this->device().create_event();
  int counter = 0;  // touched by both streams: the events are all that orders them
  bool in_order = true;
  for (int i = 0; i < 5000; ++i) {
    this->a_->wait(*back);
    this->a_->call([&, i] { in_order = in_order && counter++ == 2 * i; });
    this->a_->record(*there);
    this->b_->wait(*there);
    this->b_->call([&, i] { in_order = in_order && counter++ == 2 * i + 1; });
    this->b_->record(*back);
  }
  this->a_->synchronize();
  this->b_->synchronize();
  EXPECT_TRUE(in_order);
  EXPECT_EQ(counter, 10'000);
}

REGISTER_TYPED_TEST_SUITE_P(StreamSuite, WorkRunsInTheOrderOfSubmission, SubmittingBeyondTheQueueLosesNothing,
                            CopiesReachDevicePinnedAndPageableMemory, CopiesTogetherAreAllMade, ZeroBytesAreNoWork,
                            AnEventNeverRecordedIsComplete, AnEventHoldsBackAnotherStreamUntilItsWorkIsDone,
                            AnEventAlreadyCompleteHoldsNothingBack, RecordingAgainDoesNotMoveAWaitAlreadySubmitted,
                            ALaterRecordElsewhereDoesNotReleaseAWaitForTheFormerOne,
                            AStreamThatFollowsAnotherWaitsForItsWork, AStreamThatFollowsACaptureIsPartOfIt,
                            AnUrgentStreamOrdersItsWorkAsAnyOther, WithinALaunchStreamsRunSideBySide,
                            WithinALaunchAStreamMayFollowOften, TimedEventsTellTheTimeBetweenThem,
                            AnEventTellsNoTimeUnlessItIsTimedRecordedAndComplete,
                            CapturedWorkDoesTheSameAtEveryLaunch, CapturedWorkMayBeLaunchedOnAnotherStream,
                            CapturedEventsStandForTheirLaunch, TenThousandHandoversKeepTheOrder);

}  // namespace headrace::test
