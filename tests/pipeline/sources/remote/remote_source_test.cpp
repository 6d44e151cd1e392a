// What is read over a network is what is read from a file: every format, and little more than its bytes.
#include "headrace/cache/disk_cache.h"
#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/stats.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"

namespace headrace::test {
namespace {

class RemoteSources : public RemoteTest {
 protected:
  // Opens both and compares what they are and give.
  void expect_same(const std::filesystem::path& remote, const std::filesystem::path& local,
                   Split split = Split::kTrain) {
    const OpenedSource far = recognise_source(remote, split), near = recognise_source(local, split);
    EXPECT_EQ(far.format, near.format) << remote;
    EXPECT_EQ(far.source->info().records, near.source->info().records) << remote;
    EXPECT_EQ(far.source->info().classes, near.source->info().classes) << remote;
    EXPECT_EQ(far.source->info().fingerprint, near.source->info().fingerprint) << remote;
    EXPECT_EQ(stream_of(decoded(remote, split)), stream_of(decoded(local, split))) << remote;
  }
};

Bytes web_shard(std::uint64_t first) {
  TarBuilder tar;
  for (std::uint64_t i = first; i < first + 6; ++i) {
    tar.add(std::to_string(i) + ".jpg", noisy_jpeg(i));
    tar.add(std::to_string(i) + ".cls", to_bytes("1"));
  }
  return tar.finish();
}

// Samples with so many bytes after each image, which no decoder reads.
Bytes tar_of_samples(std::uint64_t count, std::size_t padding) {
  TarBuilder tar;
  for (std::uint64_t i = 0; i < count; ++i) {
    Bytes image = noisy_jpeg(i);
    image.resize(image.size() + padding);
    tar.add(std::to_string(i) + ".jpg", image);
    tar.add(std::to_string(i) + ".cls", to_bytes("1"));
  }
  return tar.finish();
}

Bytes tf_shard(std::uint64_t first) {
  Bytes file;
  for (std::uint64_t i = first; i < first + 5; ++i) {
    append(file, frame(example({entry("image/encoded", bytes_feature(noisy_jpeg(i))),
                                entry("image/class/label", packed_feature(1))})));
  }
  return file;
}

TEST_F(RemoteSources, ArchivesOfImages) {
  const Bytes tar = tar_of_images(20);
  put("a.tar", tar);
  put("a.tar.gz", gzip(tar));
  put("a.tar.zst", zstd(tar));
  ZipBuilder zip;
  for (std::uint64_t i = 0; i < 12; ++i)
    zip.add(std::string(i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".jpg", noisy_jpeg(i), i % 3 == 0);
  put("a.zip", zip.finish());
  for (const char* name : {"a.tar", "a.tar.gz", "a.tar.zst", "a.zip"}) expect_same(at(name), local_ / name);
}

TEST_F(RemoteSources, ShardsThatAPatternNames) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    put("web/train-0" + std::to_string(i) + ".tar", web_shard(6 * i));
    put("tf/train-0" + std::to_string(i) + ".tfrecord", tf_shard(5 * i));
  }
  expect_same(at("web/train-{00..02}.tar"), local_ / "web");
  expect_same(at("tf/train-{00..02}.tfrecord"), local_ / "tf");
  EXPECT_THROW(open_source(at("web/train-{00..03}.tar"), Split::kTrain), DataError);
}

// Members and files beside images are fetched ahead with the image.
TEST_F(RemoteSources, MembersAndFilesBesideImages) {
  TarBuilder tar;
  for (std::uint64_t i = 0; i < 12; ++i) {
    const std::string key = std::to_string(i), json = "{\"n\": " + key + ".5}";
    tar.add(key + ".jpg", noisy_jpeg(i))
        .add(key + ".cls", to_bytes("1"))
        .add(key + ".txt", to_bytes("text " + key));
    tar.add(key + ".json", to_bytes(json));
    for (const auto& [name, bytes] :
         {std::pair{std::string(".jpg"), noisy_jpeg(i)}, {".json", to_bytes(json)}, {".txt", to_bytes("text")}}) {
      const std::string path = std::string(i % 2 == 0 ? "a/" : "b/") + key + name;
      local_.write("set/" + path, bytes);
      server_.serve("/bucket/set/" + path, text_of(bytes));
    }
  }
  put("a.tar", tar.finish());
  put("a.tar.zst", zstd(tar.finish()));
  const SourceOptions options{.columns = {.columns = {"txt", "json.n"}}};
  const auto expect_same_records = [&](const std::filesystem::path& remote, const std::filesystem::path& local) {
    const SourcePtr far = open_source(remote, Split::kTrain, options),
                    near = open_source(local, Split::kTrain, options);
    ASSERT_EQ(far->info().fields.size(), 4U);
    EXPECT_EQ(far->info().fields[3].dtype, DType::kF32);
    EXPECT_EQ(far->info().fingerprint, near->info().fingerprint) << remote;
    std::vector<std::uint64_t> all(12);
    for (std::uint64_t i = 0; i < 12; ++i) all[i] = i;
    far->will_read(all);
    std::vector<std::byte> scratch, other;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const RecordView read = far->read(i, scratch), expected = near->read(i, other);
      for (std::size_t field = 0; field < 4; ++field) {
        EXPECT_EQ(to_bytes(read.fields[field]), to_bytes(expected.fields[field])) << remote << " " << field;
      }
    }
  };
  expect_same_records(at("a.tar"), local_ / "a.tar");
  expect_same_records(at("a.tar.zst"), local_ / "a.tar.zst");
  expect_same_records(s3("bucket/set/"), local_ / "set");
}

TEST_F(RemoteSources, ATableOfImages) {
  std::string table = "path,label\n", mixed = "path,label\n";
  for (int i = 0; i < 9; ++i) {
    const std::string name = "images/no " + std::to_string(i) + ".jpg";
    local_.write(name, noisy_jpeg(static_cast<std::uint64_t>(i)));
    server_.serve("/" + name, text_of(noisy_jpeg(static_cast<std::uint64_t>(i))));
    table += name + "," + std::to_string(i % 2) + "\n";
    mixed += at("images/no%20" + std::to_string(i) + ".jpg") + "," + std::to_string(i % 2) + "\n";
  }
  put("t.csv", to_bytes(table));
  expect_same(at("t.csv"), local_ / "t.csv");
  EXPECT_EQ(stream_of(decoded(local_.write("mixed.csv", mixed))), stream_of(decoded(local_ / "t.csv")));
}

TEST_F(RemoteSources, ARecordFileIsOpenedByFewRequests) {
  local_.write("a.tar", tar_of_images(200, 20'000));
  convert_dataset(local_ / "a.tar", local_ / "a.records");
  const std::vector<std::byte> bytes = read_whole_file(local_ / "a.records");
  server_.serve("/a.records", text_of(bytes));
  const SourcePtr source = open_source(at("a.records"), Split::kTrain);
  EXPECT_LT(server_.request_count(), 6U);
  EXPECT_LT(server_.sent_bytes(), bytes.size() / 4);
  expect_same(at("a.records"), local_ / "a.records");
}

TEST_F(RemoteSources, PrefixesOfAStore) {
  for (int i = 0; i < 10; ++i) {
    const Bytes image = noisy_jpeg(static_cast<std::uint64_t>(i));
    const std::string name = std::string(i % 2 == 0 ? "train/a b/" : "train/b+c/") + std::to_string(i) + ".jpg";
    local_.write("set/" + name, image);
    server_.serve("/bucket/set/" + name, text_of(image));
    server_.serve("/bucket/set/test/a b/" + std::to_string(i) + ".jpg", text_of(image));
    local_.write("set/test/a b/" + std::to_string(i) + ".jpg", image);
  }
  for (std::uint64_t i = 0; i < 2; ++i) {
    local_.write("web/train-" + std::to_string(i) + ".tar", web_shard(6 * i));
    server_.serve("/bucket/web/train-" + std::to_string(i) + ".tar", text_of(web_shard(6 * i)));
  }
  expect_same(s3("bucket/set/"), local_ / "set");
  expect_same(s3("bucket/set"), local_ / "set", Split::kTest);
  expect_same(s3("bucket/web/"), local_ / "web");
  EXPECT_THROW(open_source(s3("bucket/nothing/"), Split::kTrain), DataError);
}

// The names that are left of the keys are those of local files, equally long, of other pixels.
TEST_F(RemoteSources, AKeyChoosesNoLocalFile) {
  for (int i = 0; i < 4; ++i) {
    const std::string name = (local_ / (i % 2 == 0 ? "cat/" : "dog/")).string() + std::to_string(i) + ".jpg";
    const Bytes image = noisy_jpeg(static_cast<std::uint64_t>(i));
    local_.write(name.substr(local_.path().string().size() + 1), Bytes(image.size()));
    server_.serve("/bucket/set/" + name, text_of(image));   // "set//tmp/..."
    server_.serve("/bucket/plain" + name, text_of(image));  // "plain/tmp/..."
  }
  EXPECT_EQ(stream_of(decoded(s3("bucket/set/"))), stream_of(decoded(s3("bucket/plain/"))));
  server_.serve("/bucket/up/a/../../1.jpg", "x");
  EXPECT_THROW(open_source(s3("bucket/up/"), Split::kTrain), DataError);
}

// A listing of three keys a page tells what a prefix is: no name is asked for.
TEST_F(RemoteSources, APrefixIsListedOnce) {
  for (const char* key : {"set/cat/1.jpg", "set/cat/2.jpg", "set/dog/3.jpg", "set/dog/4.jpg"})
    server_.serve(std::string("/bucket/") + key, text_of(noisy_jpeg(1)));
  for (const char* key : {"web/train/0.tar", "web/val/0.tar"})
    server_.serve(std::string("/bucket/") + key, text_of(web_shard(0)));
  std::uint64_t before = server_.request_count();
  EXPECT_EQ(open_source(s3("bucket/set/"), Split::kTrain)->info().classes.size(), 2U);
  EXPECT_EQ(server_.request_count() - before, 2U) << "two pages";
  before = server_.request_count();
  EXPECT_EQ(open_source(s3("bucket/web/"), Split::kTrain)->info().records, 6U);
  EXPECT_EQ(open_source(s3("bucket/web/"), Split::kTest)->info().records, 6U);
  const std::vector<ServedRequest> all = server_.requests();
  const auto asked = std::span(all).subspan(static_cast<std::size_t>(before));
  EXPECT_EQ(std::ranges::count_if(asked, [](const auto& one) { return one.path() == "/bucket/"; }), 1);
  EXPECT_TRUE(std::ranges::all_of(asked, [](const auto& one) {
    return one.path() == "/bucket/" || one.path().ends_with("/0.tar");
  })) << "no other names are asked for";
}

TEST_F(RemoteSources, ASmallShardIsOpenedByOneRequest) {
  constexpr std::uint64_t kShards = 40, kPages = (kShards + 2) / 3;
  for (std::uint64_t i = 0; i < kShards; ++i)
    put("bucket/many/" + std::to_string(100 + i) + ".tar", web_shard(6 * i));
  server_.slow_down(std::chrono::milliseconds(5), 0);
  const std::uint64_t before = server_.request_count();
  EXPECT_EQ(open_source(s3("bucket/many/"), Split::kTrain)->info().records, 6 * kShards);
  EXPECT_EQ(server_.request_count() - before, kShards + kPages);
  server_.slow_down({}, 0);
  expect_same(s3("bucket/many/"), local_ / "bucket/many");
}

TEST_F(RemoteSources, ADamagedShardIsNamedWhicheverWasReadFirst) {
  for (int i = 0; i < 20; ++i) put("bucket/bad/" + std::to_string(100 + i) + ".tar", web_shard(0));
  for (const char* name : {"105", "113"}) {
    Bytes cut = web_shard(0);
    cut.resize(cut.size() / 2);
    put("bucket/bad/" + std::string(name) + ".tar", cut);
  }
  const auto error = [&](const std::filesystem::path& path) {
    return error_of<DataError>([&] { open_source(path, Split::kTrain); });
  };
  const DataError far = error(s3("bucket/bad/")), near = error(local_ / "bucket/bad");
  EXPECT_THAT(far.location().source, EndsWith("105.tar"));
  EXPECT_THAT(far.message(), HasSubstr("105.tar: the archive ends within a member's header"));
  EXPECT_EQ(far.location().offset, near.location().offset);
}

TEST_F(RemoteSources, LargeRecordsOfAnArrayAreReadOneByOne) {
  constexpr std::int64_t kRecords = 65, kBytes = 1 << 20;
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(kRecords) + ", " +
                       std::to_string(kBytes) + "), }";
  header.resize(117, ' ');
  Bytes file = to_bytes(std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n");
  for (std::int64_t i = 0; i < kRecords; ++i) file.resize(file.size() + kBytes, static_cast<std::byte>(i));
  server_.serve("/large.npy", text_of(file));
  const std::uint64_t before = server_.sent_bytes();
  const SourcePtr source = open_source(at("large.npy"), Split::kTrain);
  std::vector<std::byte> scratch;
  const std::array<std::uint64_t, 2> records{7, 60};
  source->will_read(records);
  for (const std::uint64_t record : records) {
    const std::span<const std::byte> row = source->read(record, scratch).fields[0];
    ASSERT_EQ(row.size(), static_cast<std::size_t>(kBytes));
    EXPECT_TRUE(std::ranges::all_of(row, [&](std::byte b) { return b == static_cast<std::byte>(record); }));
  }
  EXPECT_LT(server_.sent_bytes() - before, 4 * kBytes);
}

TEST_F(RemoteSources, AreConvertedToTheSameFileByAnyThreads) {
  put("a.tar", tar_of_images(60));
  for (const int threads : {1, 2, 5}) {
    convert_dataset(at("a.tar"), local_ / "far.records", {.threads = threads});
    convert_dataset(local_ / "a.tar", local_ / "near.records", {.threads = 1});
    EXPECT_EQ(read_whole_file(local_ / "far.records"), read_whole_file(local_ / "near.records"));
  }
}

TEST_F(RemoteSources, CredentialsSignRequestsAndShowNowhere) {
  server_.serve("/bucket/a.tar", text_of(tar_of_images(12)));
  server_.want_signatures();
  const std::string url = s3("bucket/a.tar");
  EXPECT_THROW(open_source(url, Split::kTrain), DataError);
  ::setenv("AWS_ACCESS_KEY_ID", "keyname", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
  ::setenv("AWS_SESSION_TOKEN", "tokenhunter", 1);
  const Dataset dataset = decoded(url);
  const std::string said = dataset.to_json() + dataset.explain();
  EXPECT_THAT(said, AllOf(HasSubstr(url), Not(HasSubstr("hunter")), Not(HasSubstr("keyname"))));
  EXPECT_EQ(stream_of(dataset).size(), 2U);
  const ServedRequest last = server_.requests().back();
  EXPECT_THAT(last.headers.at("authorization"),
              AllOf(HasSubstr("AWS4-HMAC-SHA256"), HasSubstr("keyname/"), HasSubstr("/us-east-1/s3/")));
  EXPECT_THAT(last.headers.at("authorization"), HasSubstr("x-amz-content-sha256;x-amz-date;x-amz-security-token"));
  EXPECT_EQ(last.headers.at("x-amz-security-token"), "tokenhunter");
}

TEST_F(RemoteSources, ARedirectIsFollowed) {
  put("real.tar", tar_of_images(12));
  server_.redirect("/a.tar", "/real.tar");
  EXPECT_EQ(stream_of(decoded(at("a.tar"))), stream_of(decoded(local_ / "real.tar")));
}

TEST_F(RemoteSources, APlanNamesTheUrlAndOpensItAgain) {
  put("a.tar", tar_of_images(12));
  const Dataset dataset = decoded(at("a.tar"));
  EXPECT_THAT(dataset.explain(), HasSubstr(at("a.tar")));
  const Dataset again = Dataset::from_json(dataset.to_json(), {.base = local_.path()});
  EXPECT_EQ(stream_of(again), stream_of(dataset));
}

TEST_F(RemoteSources, WithACacheLaterPassesFetchNothing) {
  const Bytes tar = tar_of_images(400, 20'000);
  put("a.tar", tar);
  const Dataset dataset = Dataset::from(open_source(at("a.tar"), Split::kTrain))
                              .decode({.height = kSide, .width = kSide})
                              .cache(disk(local_ / "cache"))
                              .shuffle({.seed = 1})
                              .batch({.global_batch = 8});
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, {.epochs = 8});
  const std::uint64_t sent = server_.sent_bytes();
  while (loader.next()) {
  }
  // What was announced before the first pass ended may come twice.
  EXPECT_LT(server_.sent_bytes() - sent, tar.size() * 2);
}

// Cancelled requests end soon, on the client's thread: those of a test before, too.
void wait_until_little_is_held() {
  const Stopwatch clock;
  while (remote::counters().held_bytes >= 2U << 20 && clock.seconds() < 30) std::this_thread::yield();
}

TEST_F(RemoteSources, APartOfTheReplicasFetchesItsOwnRows) {
  const Bytes tar = tar_of_images(64, 100'000);
  put("a.tar", tar);
  const Dataset dataset = decoded(at("a.tar"));
  wait_until_little_is_held();
  const std::uint64_t sent = server_.sent_bytes();
  stream_of(dataset, {.world = {.total = 4, .first = 1}});
  EXPECT_LT(server_.sent_bytes() - sent, tar.size() / 4 * 5 / 4) << "of " << tar.size();
}

// What a stream fetches, holds and waits for depends on the pace of decoding: these run alone.
class RemotePace : public RemoteSources {};

TEST_F(RemotePace, FetchesEachByteOnceAndHoldsFew) {
  const Bytes tar = tar_of_images(300, 100'000);
  put("a.tar", tar);
  const Dataset dataset = decoded(at("a.tar"));
  wait_until_little_is_held();
  const std::uint64_t sent = server_.sent_bytes();
  DeviceGroup devices = cpu_replicas(1);
  {
    Loader loader(dataset, devices, {.epochs = 2, .memory_budget_bytes = 16 << 20});
    std::uint64_t most = 0;
    while (loader.next()) most = std::max(most, remote::counters().held_bytes);
    EXPECT_LT(most, 30U << 20);
  }
  EXPECT_LT(server_.sent_bytes() - sent, 2 * tar.size() * 21 / 20);
  wait_until_little_is_held();
  EXPECT_LT(remote::counters().held_bytes, 2U << 20);
}

// Of a distant store only headers are fetched, where the line takes longer for the bytes between them.
TEST_F(RemotePace, ShardsAreIndexedByTheirHeaders) {
  std::uint64_t bytes = 0;
  for (std::uint64_t shard = 0; shard < 16; ++shard) {
    const Bytes tar = tar_of_samples(40, 100'000);
    bytes += tar.size();
    put("bucket/far/" + std::to_string(100 + shard) + ".tar", tar);
  }
  server_.slow_down(std::chrono::milliseconds(10), 6'000'000);
  const std::uint64_t before = server_.sent_bytes();
  const SourcePtr far = open_source(s3("bucket/far/"), Split::kTrain);
  EXPECT_LT(server_.sent_bytes() - before, bytes / 2);
  EXPECT_EQ(far->info().fingerprint, open_source(local_ / "bucket/far", Split::kTrain)->info().fingerprint);
}

TEST_F(RemotePace, AStreamBoundByTheNetworkIsSaidToBe) {
  put("a.tar", tar_of_images(64, 50'000));
  const Dataset dataset = decoded(at("a.tar"));
  server_.slow_down(std::chrono::milliseconds(5), 5'000'000);  // far below the pace of decoding
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, {.epochs = 3});
  while (loader.next()) {
  }
  const Verdict verdict = judge(loader.stats());
  EXPECT_EQ(verdict.kind, "network");
  EXPECT_EQ(verdict.bottleneck, "read");
}

}  // namespace
}  // namespace headrace::test
