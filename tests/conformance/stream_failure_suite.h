// What every Stream must do when work fails or a call is out of place.
#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <stdexcept>

#include "headrace/devices/base/error.h"
#include "headrace/tests/conformance/device_fixture.h"

namespace headrace::test {

template <typename Target>
class StreamFailureSuite : public StreamFixture<Target> {};
TYPED_TEST_SUITE_P(StreamFailureSuite);

TYPED_TEST_P(StreamFailureSuite, CapturesAreNotNested) {
  EXPECT_THROW(this->a_->end_capture(), DeviceError);
  this->a_->begin_capture();
  const auto work = this->a_->end_capture();
  this->a_->begin_capture();
  EXPECT_THROW(this->a_->begin_capture(), DeviceError);
  EXPECT_THROW(this->a_->launch(*work), DeviceError);
  EXPECT_THROW(this->a_->synchronize(), DeviceError);
  this->a_->end_capture();
  EXPECT_NO_THROW(this->a_->synchronize());
}

TYPED_TEST_P(StreamFailureSuite, AnErrorSurfacesOnce) {
  this->fail_with(*this->a_, "first");
  this->fail_with(*this->a_, "second");
  EXPECT_THAT(this->error_of(*this->a_), ::testing::HasSubstr("first"));
  EXPECT_EQ(this->error_of(*this->a_), "");
}

TYPED_TEST_P(StreamFailureSuite, WorkAfterAnErrorIsSkippedUntilItWasReported) {
  int ran = 0;
  this->fail_with(*this->a_, "broken");
  for (int i = 0; i < 10; ++i) this->a_->call([&] { ++ran; });
  EXPECT_EQ(this->error_of(*this->a_), "broken");
  EXPECT_EQ(ran, 0);
  this->a_->call([&] { ++ran; });
  EXPECT_EQ(this->error_of(*this->a_), "");
  EXPECT_EQ(ran, 1);
}

TYPED_TEST_P(StreamFailureSuite, NobodyHangsOnAnEventOfAFailedStream) {
  const auto event = this->device().create_event();
  int ran = 0;
  this->fail_with(*this->a_, "broken");
  this->a_->record(*event);
  this->b_->wait(*event);
  this->b_->call([&] { ++ran; });
  EXPECT_EQ(this->error_of(*this->b_), "") << "an error belongs to its own stream";
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(this->eventually(*event));
  EXPECT_EQ(this->error_of(*this->a_), "broken");
}

TYPED_TEST_P(StreamFailureSuite, AnErrorWithinALaunchSkipsItsRestButReachesItsEvents) {
  const auto event = this->device().create_event();
  bool fails = true;
  int ran = 0;
  this->a_->begin_capture();
  this->a_->call([&] {
    if (fails) throw std::runtime_error("in the launch");
  });
  this->a_->call([&] { ++ran; });
  this->a_->record(*event);
  const auto work = this->a_->end_capture();
  this->a_->launch(*work);
  this->a_->launch(*work);
  EXPECT_TRUE(this->eventually(*event));
  EXPECT_EQ(this->error_of(*this->a_), "in the launch");
  EXPECT_EQ(ran, 0);
  fails = false;
  this->a_->launch(*work);
  EXPECT_EQ(this->error_of(*this->a_), "");
  EXPECT_EQ(ran, 1);
}

TYPED_TEST_P(StreamFailureSuite, ACaptureEndsOnlyWhereItIsJoined) {
  this->a_->begin_capture();
  this->b_->follow(*this->a_);
  EXPECT_THROW(this->b_->begin_capture(), DeviceError);
  EXPECT_THROW(this->b_->end_capture(), DeviceError);
  EXPECT_THROW(this->b_->synchronize(), DeviceError);
  this->b_->call([] {});
  EXPECT_THROW(this->a_->end_capture(), DeviceError);
  this->a_->begin_capture();
  EXPECT_THROW(this->a_->follow(*this->b_), DeviceError) << "it has not joined";
  this->a_->end_capture();
  EXPECT_NO_THROW(this->a_->synchronize());
  EXPECT_NO_THROW(this->b_->synchronize());
}

TYPED_TEST_P(StreamFailureSuite, AnErrorBesideTheLaunchingStreamIsThatStreams) {
  for (const bool beside : {false, true}) {
    bool fails = true;
    int ran = 0;
    this->a_->begin_capture();
    const auto fail = [&] {
      if (fails) throw std::runtime_error("in the launch");
    };
    if (!beside) this->a_->call(fail);
    this->b_->follow(*this->a_);
    if (beside) this->b_->call(fail);
    this->b_->call([&] { ++ran; });
    this->a_->follow(*this->b_);
    this->a_->call([&] { ++ran; });
    const auto work = this->a_->end_capture();
    this->a_->launch(*work);
    this->a_->launch(*work);
    EXPECT_EQ(this->error_of(*this->a_), "in the launch") << beside;
    EXPECT_EQ(this->error_of(*this->b_), "");
    EXPECT_EQ(ran, 0);
    fails = false;
    this->a_->launch(*work);
    EXPECT_EQ(this->error_of(*this->a_), "");
    EXPECT_EQ(ran, 2);
    this->fail_with(*this->a_, "before the launch");
    this->a_->launch(*work);
    EXPECT_EQ(this->error_of(*this->a_), "before the launch");
    EXPECT_EQ(ran, 2);
  }
}

TYPED_TEST_P(StreamFailureSuite, DestroyingAStreamWaitsForItsWork) {
  std::atomic<int> ran = 0;
  {
    const auto stream = this->device().create_stream();
    for (int i = 0; i < 100; ++i) stream->call([&] { ++ran; });
    this->fail_with(*stream, "never reported");
  }
  EXPECT_EQ(ran, 100);
}

REGISTER_TYPED_TEST_SUITE_P(StreamFailureSuite, CapturesAreNotNested, AnErrorSurfacesOnce,
                            WorkAfterAnErrorIsSkippedUntilItWasReported, NobodyHangsOnAnEventOfAFailedStream,
                            AnErrorWithinALaunchSkipsItsRestButReachesItsEvents, ACaptureEndsOnlyWhereItIsJoined,
                            AnErrorBesideTheLaunchingStreamIsThatStreams, DestroyingAStreamWaitsForItsWork);

}  // namespace headrace::test
