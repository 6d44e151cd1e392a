// Servers that misbehave: the stream is that of the local file, or an error says what happened.
#include "headrace/devices/base/clock.h"
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"

namespace headrace::test {
namespace {

class RemoteFaults : public RemoteTest {
 protected:
  RemoteFaults() {
    remote::Timing timing = kQuickRetries;
    timing.stall = std::chrono::milliseconds(100);
    remote::set_timing(timing);
    put("a.tar", tar_of_images(40, 30'000));
  }

  // The stream of the served archive and of the file are the same.
  void expect_same_stream() {
    const auto wanted = stream_of(decoded(local_ / "a.tar"), {.epochs = 2});
    EXPECT_EQ(stream_of(decoded(at("a.tar")), {.epochs = 2}), wanted);
  }
  std::string error_of_stream(const Dataset& dataset) {
    return message_of<Error>([&] { stream_of(dataset, {.epochs = 3}); });
  }
};

class RemoteMisbehaviour : public RemoteFaults, public ::testing::WithParamInterface<Misbehaviour> {};
INSTANTIATE_TEST_SUITE_P(Each, RemoteMisbehaviour,
                         ::testing::Values(Misbehaviour::kNone, Misbehaviour::kUnavailable, Misbehaviour::kTooMany,
                                           Misbehaviour::kReset, Misbehaviour::kShort, Misbehaviour::kWrongRange,
                                           Misbehaviour::kIgnoresRange, Misbehaviour::kCloses));

TEST_P(RemoteMisbehaviour, ChangesNothing) {
  server_.misbehave(
      [](const ServedRequest& request) { return request.number % 3 == 1 ? GetParam() : Misbehaviour::kNone; });
  expect_same_stream();
}

TEST_F(RemoteFaults, OfAllKindsChangeNothing) {
  server_.misbehave([](const ServedRequest& request) {
    constexpr Misbehaviour kAll[] = {
        Misbehaviour::kUnavailable,  Misbehaviour::kReset,   Misbehaviour::kShort,  Misbehaviour::kWrongRange,
        Misbehaviour::kIgnoresRange, Misbehaviour::kTooMany, Misbehaviour::kCloses, Misbehaviour::kNone};
    return request.number % 40 == 7 ? Misbehaviour::kStalls : kAll[request.number * 5 % 8];
  });
  expect_same_stream();
}

TEST_F(RemoteFaults, AServerThatNeverKnowsRangesIsRead) {
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kIgnoresRange; });
  expect_same_stream();
}

TEST_F(RemoteFaults, AChangedFileIsNeverMixedWithWhatItWas) {
  for (const bool has_etag : {true, false}) {
    const ServedFile first{.bytes = std::make_shared<const std::string>(text_of(tar_of_images(40, 30'000))),
                           .etag = has_etag ? "\"a\"" : "",
                           .last_modified = "Mon, 02 Jan 2006 15:04:05 GMT"};
    ServedFile second = first;
    second.etag = has_etag ? "\"b\"" : "";
    second.last_modified = "Tue, 03 Jan 2006 15:04:05 GMT";
    server_.serve("/c.tar", first);
    const Dataset dataset = decoded(at("c.tar"));
    server_.serve("/c.tar", second);
    EXPECT_THAT(error_of_stream(dataset), AllOf(HasSubstr("changed since it was opened"), HasSubstr("c.tar")));
  }
}

TEST_F(RemoteFaults, AFileThatIsGoneIsAskedForOnce) {
  const Dataset dataset = decoded(at("a.tar"));
  server_.remove("/a.tar");
  EXPECT_THAT(error_of_stream(dataset),
              AllOf(HasSubstr("there is no such file (HTTP 404)"), Not(HasSubstr("gave up"))));
}

TEST_F(RemoteFaults, WhatIsMissingOrDeniedIsNotAskedForAgain) {
  EXPECT_THROW(open_source(at("missing.tar"), Split::kTrain), DataError);
  EXPECT_EQ(server_.request_count(), 1U);
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kDenied; });
  EXPECT_THAT(error_of<DataError>([&] { open_source(at("a.tar"), Split::kTrain); }).what(),
              AllOf(HasSubstr("access is denied (HTTP 403)"), HasSubstr("s3://")));
  EXPECT_EQ(server_.request_count(), 2U);
}

TEST_F(RemoteFaults, AServerThatStaysAwayIsGivenUp) {
  const Dataset dataset = decoded(at("a.tar"));
  remote::set_timing({.first_pause = std::chrono::milliseconds(1),
                      .max_pause = std::chrono::milliseconds(10),
                      .stall = std::chrono::seconds(10),
                      .deadline = std::chrono::milliseconds(200)});
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kUnavailable; });
  EXPECT_THAT(error_of_stream(dataset), AllOf(HasSubstr("HTTP 503"), HasSubstr("gave up after")));
}

TEST_F(RemoteFaults, AServerThatSaysNothingIsGivenUp) {
  const Dataset dataset = decoded(at("a.tar"));
  remote::set_timing({.first_pause = std::chrono::milliseconds(1),
                      .max_pause = std::chrono::milliseconds(10),
                      .stall = std::chrono::milliseconds(100),
                      .deadline = std::chrono::milliseconds(200)});
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kSilent; });
  EXPECT_THAT(error_of_stream(dataset), AllOf(HasSubstr("nothing came for too long"), HasSubstr("gave up after")));
}

TEST_F(RemoteFaults, BadRecordsAreSkippedAsThePolicySays) {
  std::string table = "path,label\n";
  for (int i = 0; i < 12; ++i) {
    Bytes image = noisy_jpeg(static_cast<std::uint64_t>(i));
    image.resize(image.size() + 30'000);  // more than is fetched to see what it is
    put(std::to_string(i) + ".jpg", image);
    table += std::to_string(i) + ".jpg,0\n";
  }
  put("t.csv", to_bytes(table));
  const Dataset dataset = decoded(at("t.csv"));
  server_.remove("/4.jpg");
  const auto batches = stream_of(dataset, {.errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  std::int64_t examples = 0;
  for (const BatchDigest& batch : batches) examples += batch.examples;
  EXPECT_EQ(examples, 11);
}

TEST_F(RemoteFaults, AHangingServerHoldsUpNoStop) {
  remote::set_timing({});
  const Dataset dataset = decoded(at("a.tar"));
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kSilent; });
  DeviceGroup devices = cpu_replicas(1);
  auto loader = std::make_unique<Loader>(dataset, devices);
  const std::uint64_t requests = server_.request_count();
  while (server_.request_count() == requests) std::this_thread::yield();
  const Stopwatch clock;
  loader.reset();
  EXPECT_LT(clock.seconds(), 1.0);
}

TEST_F(RemoteFaults, AnOpeningThatHangsCanBePolled) {
  remote::set_timing({});
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kSilent; });
  int looks = 0;
  const ScanPoll poll([&] {
    if (++looks == 3) throw std::runtime_error("interrupted");
  });
  EXPECT_THROW(open_source(at("a.tar"), Split::kTrain), std::runtime_error);
}

}  // namespace
}  // namespace headrace::test
