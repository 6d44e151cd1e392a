// Shards behind a server as a stream: the bits of the same files on a disk, each byte fetched once.
#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/convert.h"
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"
#include "headrace/tests/pipeline/sources/source_suite.h"

namespace headrace::test {
namespace {

class RemoteShards : public RemoteTest {
 protected:
  static constexpr std::uint64_t kShards = 6, kImages = 20;

  RemoteShards() {
    for (std::uint64_t shard = 0; shard < kShards; ++shard) {
      TarBuilder tar;
      for (std::uint64_t i = 0; i < kImages - shard; ++i) {
        Bytes image = noisy_jpeg(100 * shard + i);
        image.resize(image.size() + 20'000);  // which no decoder reads
        tar.add(std::to_string(i) + ".jpg", image)
            .add(std::to_string(i) + ".cls", to_bytes(std::to_string(shard)));
      }
      const Bytes bytes = tar.finish();
      bytes_ += bytes.size();
      put("set/train-" + std::to_string(shard) + ".tar", bytes);
    }
  }

  // Threads that a loader had to leave behind end before the program does.
  void TearDown() override {
    server_.misbehave({});
    for (const std::weak_ptr<const Source>& source : opened_) {
      while (!source.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Dataset plan(const std::filesystem::path& path, std::uint64_t window = 32) {
    const SourcePtr source = open_source(path, Split::kTrain, {.indexed = false});
    opened_.push_back(source);
    return Dataset::from(source)
        .shuffle_shards({.window = window, .shards = 3})
        .decode({.height = kSide, .width = kSide})
        .batch({.global_batch = 8});
  }

  std::uint64_t bytes_ = 0;
  std::vector<std::weak_ptr<const Source>> opened_;
};

TEST_F(RemoteShards, AreTheStreamOfTheFilesAndFetchedOnce) {
  const auto local = stream_of(plan(local_ / "set"), {.epochs = 2});
  const Dataset remote = plan(s3("set/"));
  EXPECT_EQ(remote.fingerprint(), plan(local_ / "set").fingerprint());
  const std::uint64_t before = server_.sent_bytes();
  EXPECT_EQ(stream_of(remote, {.epochs = 2}), local);
  EXPECT_LT(server_.sent_bytes() - before, 2 * bytes_ + bytes_ / 4);
  EXPECT_EQ(stream_of(plan(server_.url() + "/set/train-{0..5}.tar"), {.epochs = 2}), local);
}

TEST_F(RemoteShards, BeginWithoutAPassOverAll) {
  server_.slow_down(std::chrono::milliseconds(5), 20'000'000);
  const std::uint64_t before = server_.sent_bytes();
  DeviceGroup devices = test_devices(1);
  Loader loader(plan(s3("set/"), 16), devices, {.prefetch = 1});
  EXPECT_TRUE(loader.next());
  EXPECT_LT(server_.sent_bytes() - before, bytes_);
}

// Which of the first shard's bytes come first is the order's to say.
TEST_F(RemoteShards, AreOpenedByTheirHeaders) {
  const std::uint64_t before = server_.sent_bytes();
  const Dataset remote = plan(s3("set/"));
  EXPECT_LT(server_.sent_bytes() - before, kShards * (std::uint64_t{18} << 10) + (std::uint64_t{24} << 10));
}

TEST_F(RemoteShards, AreConvertedInOnePass) {
  ConvertOptions options{.shard_bytes = 400'000, .split = Split::kTrain};
  convert_dataset(local_ / "set", local_ / "indexed", options);
  options.source.indexed = false;
  const std::uint64_t before = server_.sent_bytes();
  const ConvertResult result = convert_dataset(s3("set/"), local_ / "streamed", options);
  EXPECT_LT(server_.sent_bytes() - before, bytes_ + bytes_ / 8);
  EXPECT_GT(result.shards, 3U);
  const auto records = [&](const char* folder) { return read_all(*open_source(local_ / folder, Split::kTrain)); };
  EXPECT_EQ(records("streamed"), records("indexed"));
}

// Otherwise the first batch would take a round trip for each shard.
TEST_F(RemoteShards, AreRequestedTogether) {
  const Dataset remote = plan(s3("set/"));
  server_.misbehave([](const ServedRequest& request) {
    const auto range = request.headers.find("range");
    const bool head = range == request.headers.end() || range->second.starts_with("bytes=0-");
    return head ? Misbehaviour::kNone : Misbehaviour::kSilent;
  });
  const std::uint64_t before = server_.request_count();
  DeviceGroup devices = test_devices(1);
  Loader loader(remote, devices);
  const auto asked = [&] {
    std::set<std::string> paths;
    for (const ServedRequest& request : server_.requests()) {
      const auto range = request.headers.find("range");
      if (request.number >= before && range != request.headers.end() && !range->second.starts_with("bytes=0-"))
        paths.insert(request.path());
    }
    return paths.size();
  };
  // Three that are read, and the three that follow.
  while (asked() < kShards) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// What is left of a window is fetched by itself, and of the rest of the shards only what follows.
TEST_F(RemoteShards, ContinueWithoutWhatWasRead) {
  const Dataset remote = plan(s3("set/"), 64);
  DeviceGroup devices = test_devices(1);
  LoaderState state;
  {
    Loader loader(remote, devices);
    for (int step = 0; step < 13; ++step) loader.next();  // of 8 records each; windows: 4, 8, 16, 32, 45
    state = loader.state();
  }
  const std::uint64_t before = server_.request_count();
  Loader loader(remote, devices, {.start = state});
  EXPECT_EQ(loader.next()->position().step, 13U);
  std::uint64_t fetched = 0;
  for (const ServedRequest& request : server_.requests()) {
    unsigned long long from = 0, to = 0;
    const auto range = request.headers.find("range");
    if (request.number < before || range == request.headers.end()) continue;
    if (std::sscanf(range->second.c_str(), "bytes=%llu-%llu", &from, &to) == 2) fetched += to + 1 - from;
  }
  EXPECT_LT(fetched, bytes_ / 105 * 20);
}

TEST_F(RemoteShards, ContinueWhereTheyStood) {
  const Dataset remote = plan(s3("set/"));
  const auto whole = stream_of(remote, {.epochs = 2});
  DeviceGroup devices = test_devices(1);
  Loader loader(remote, devices, {.epochs = 2});
  for (std::size_t step = 0; step < whole.size(); step += 3) {
    const LoaderState state = LoaderState::parse(loader.state().serialize());
    EXPECT_EQ(stream_of(remote, {.epochs = 2, .start = state}),
              std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()));
    for (int i = 0; i < 3; ++i) loader.next();
  }
}

// Requests that fail, or break off, are repeated: that reorders nothing.
TEST_F(RemoteShards, KeepTheirOrderWhenRequestsFail) {
  const auto local = stream_of(plan(local_ / "set"), {.epochs = 2});
  fail_some_requests();
  EXPECT_EQ(stream_of(plan(s3("set/")), {.epochs = 2}), local);
}

TEST_F(RemoteShards, ThatHangHoldUpNoStop) {
  const Dataset remote = plan(s3("set/"));
  server_.misbehave([](const ServedRequest&) { return Misbehaviour::kSilent; });
  DeviceGroup devices = test_devices(1);
  std::optional<Loader> loader(std::in_place, remote, devices, LoaderOptions{.stall_timeout_seconds = 0.2});
  EXPECT_THROW(loader->next(), Error);
  const Stopwatch watch;
  loader.reset();
  EXPECT_LT(watch.seconds(), 1.0);
}

TEST_F(RemoteShards, NameTheShardThatIsGone) {
  const Dataset remote = plan(s3("set/"));
  server_.remove("/set/train-4.tar");
  EXPECT_THAT(error_of([&] { stream_of(remote); }).what(), HasSubstr("train-4.tar"));
}

}  // namespace
}  // namespace headrace::test
