// What was found in remote files is kept, and never changes what is read.
#include "headrace/pipeline/sources/kept_index.h"

#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/sources/archives/open_archive.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"

namespace headrace::test {
namespace {

class KeptIndexes : public RemoteTest {
 protected:
  static constexpr std::uint64_t kShards = 3;

  KeptIndexes() {
    for (std::uint64_t shard = 0; shard < kShards; ++shard) {
      TarBuilder web;
      Bytes tf;
      for (std::uint64_t i = 6 * shard; i < 6 * shard + 6; ++i) {
        web.add(std::to_string(i) + ".jpg", noisy_jpeg(i)).add(std::to_string(i) + ".cls", to_bytes("2"));
        web.add(std::to_string(i) + ".txt", to_bytes("picture " + std::to_string(i)));
        append(tf, frame(example({entry("image/encoded", bytes_feature(noisy_jpeg(i))),
                                  entry("image/class/label", packed_feature(1))})));
      }
      put("bucket/web/" + name(shard) + ".tar", web.finish());
      put("bucket/tf/" + name(shard) + ".tfrecord", tf);
    }
    put("images.tar", tar_of_images(20));
    keep_in(local_ / "index");
  }

  static std::string name(std::uint64_t shard) { return std::to_string(100 + shard); }
  static void keep_in(const std::filesystem::path& folder) {
    ::setenv("HEADRACE_INDEX_FOLDER", folder.c_str(), 1);
  }
  std::vector<std::filesystem::path> kept() const {
    std::vector<std::filesystem::path> files;
    for (const DirectoryEntry& one : list_directory(local_ / "index")) files.push_back(one.path);
    return files;
  }
  void expect_as_local(const std::filesystem::path& remote, const std::filesystem::path& local) {
    EXPECT_EQ(open_source(remote, Split::kTrain)->info().fingerprint,
              open_source(local, Split::kTrain)->info().fingerprint);
    EXPECT_EQ(stream_of(decoded(remote)), stream_of(decoded(local)));
  }
};

TEST_F(KeptIndexes, LeaveNothingToFetchAtTheNextOpening) {
  const std::vector<std::pair<std::filesystem::path, std::filesystem::path>> all{
      {s3("bucket/web/"), local_ / "bucket/web"},
      {s3("bucket/tf/"), local_ / "bucket/tf"},
      {at("images.tar"), local_ / "images.tar"}};
  for (const auto& [remote, local] : all) open_source(remote, Split::kTrain);
  EXPECT_EQ(kept().size(), 2 * kShards + 1);
  server_.misbehave([](const ServedRequest& request) {
    // Heads are asked for, to tell the format; nothing else is.
    const auto range = request.headers.find("range");
    const bool head = range != request.headers.end() && range->second.starts_with("bytes=0-");
    return head || request.path() == "/bucket/" ? Misbehaviour::kNone : Misbehaviour::kDenied;
  });
  for (const auto& [remote, local] : all) EXPECT_NO_THROW(open_source(remote, Split::kTrain)) << remote;
  server_.misbehave({});
  for (const auto& [remote, local] : all) expect_as_local(remote, local);
}

TEST_F(KeptIndexes, AreReadAgainForAFileThatChanged) {
  open_source(s3("bucket/web/"), Split::kTrain);
  TarBuilder other;
  for (int i = 0; i < 6; ++i) {
    other.add(std::to_string(i) + ".jpg", noisy_jpeg(50)).add(std::to_string(i) + ".cls", to_bytes("3"));
  }
  const Bytes tar = other.finish();
  local_.write("bucket/web/101.tar", tar);
  server_.serve("/bucket/web/101.tar", text_of(tar), "\"another\"");
  std::this_thread::sleep_for(std::chrono::milliseconds(5100));  // what a server said holds as long
  server_.misbehave([](const ServedRequest& request) {
    return request.path() == "/bucket/" || request.path().ends_with("101.tar") ? Misbehaviour::kNone
                                                                               : Misbehaviour::kDenied;
  });
  EXPECT_NO_THROW(open_source(s3("bucket/web/"), Split::kTrain)) << "the others are as they were";
  server_.misbehave({});
  expect_as_local(s3("bucket/web/"), local_ / "bucket/web");
}

TEST_F(KeptIndexes, ThatAreDamagedAreMadeAnew) {
  open_source(at("images.tar"), Split::kTrain);
  const std::filesystem::path file = kept().at(0);
  const Bytes good = read_whole_file(file);
  std::vector<Bytes> damaged{{}, {good.begin(), good.begin() + 20}, {good.begin(), good.end() - 1}};
  for (std::size_t at = 0; at < good.size(); at += 7) {
    damaged.push_back(good);
    damaged.back()[at] ^= std::byte{0x10};
  }
  for (const Bytes& bytes : damaged) {
    write_file_atomically(file, bytes);
    EXPECT_FALSE(KeptIndex(at("images.tar"), "tar 1").find().has_value());
  }
  expect_as_local(at("images.tar"), local_ / "images.tar");
  EXPECT_EQ(read_whole_file(file), good);
}

TEST_F(KeptIndexes, AreThoseOfTheirReaderAndTheirStore) {
  const KeptIndex kept(at("images.tar"), "a reader 1");
  const Bytes bytes = to_bytes("what it found");
  kept.keep(bytes);
  EXPECT_EQ(kept.find(), bytes);
  EXPECT_FALSE(KeptIndex(at("images.tar"), "a reader 2").find().has_value());
  HttpServer other;
  other.serve("/images.tar", text_of(read_whole_file(local_ / "images.tar")));
  EXPECT_FALSE(KeptIndex(other.url() + "/images.tar", "a reader 1").find().has_value());
  kept.keep({});
  EXPECT_EQ(kept.find(), Bytes());
}

TEST_F(KeptIndexes, AreNotOfFilesWithoutAVersionNorOfSmallLocalOnes) {
  server_.serve(
      "/unversioned.tar",
      ServedFile{.bytes = std::make_shared<const std::string>(text_of(read_whole_file(local_ / "images.tar"))),
                 .etag = ""});
  open_source(at("unversioned.tar"), Split::kTrain);
  open_source(local_ / "images.tar", Split::kTrain);
  EXPECT_EQ(path_kind(local_ / "index"), PathKind::kMissing);
}

TEST_F(KeptIndexes, OfALargeLocalFileAreThoseOfItsBytes) {
  const std::filesystem::path file = local_ / "large.tar";
  const Bytes tar = tar_of_images(40, 1'000'000);
  write_file_atomically(file, tar);
  const std::uint64_t fingerprint = open_source(file, Split::kTrain)->info().fingerprint;
  ASSERT_EQ(kept().size(), 1U);
  const auto written = std::filesystem::last_write_time(kept().at(0));
  EXPECT_EQ(open_source(file, Split::kTrain)->info().fingerprint, fingerprint);
  EXPECT_EQ(std::filesystem::last_write_time(kept().at(0)), written) << "it is read, not made again";
  // Another file of the same name, size and time.
  const auto time = std::filesystem::last_write_time(file);
  Bytes other = tar;
  other[0] ^= std::byte{1};  // the first letter of the first name
  fix_tar_checksum(std::span(other).first(512));
  write_file_atomically(file, other);
  std::filesystem::last_write_time(file, time);
  EXPECT_NE(open_source(file, Split::kTrain)->info().fingerprint, fingerprint);
}

TEST_F(KeptIndexes, AreNotKeptOfWhatIsDamaged) {
  Bytes cut = tar_of_images(6);
  cut.resize(cut.size() / 2);
  put("cut.tar", cut);
  EXPECT_THROW(open_source(at("cut.tar"), Split::kTrain), DataError);
  EXPECT_EQ(path_kind(local_ / "index"), PathKind::kMissing);
}

TEST_F(KeptIndexes, MayNotBePossible) {
  local_.write("file", to_bytes("no folder"));
  for (const std::filesystem::path& folder :
       {local_ / "file", local_ / "file/below", std::filesystem::path("off")}) {
    keep_in(folder);
    expect_as_local(at("images.tar"), local_ / "images.tar");
  }
  EXPECT_EQ(path_kind("off"), PathKind::kMissing);
}

// The index has the bytes of labels, which were read; of other members it has the positions.
TEST_F(KeptIndexes, ServeOtherMembersThanThoseThatWereReadFirst) {
  open_source(s3("bucket/web/"), Split::kTrain);
  const WebDatasetOptions captions{.members = {"caption=txt"}};
  const SourcePtr far = web_dataset(s3("bucket/web/"), captions),
                  near = web_dataset(local_ / "bucket/web", captions);
  EXPECT_EQ(far->info().fingerprint, near->info().fingerprint);
  std::vector<std::byte> one, other;
  for (std::uint64_t record = 0; record < near->info().records; ++record) {
    const RecordView a = far->read(record, one), b = near->read(record, other);
    for (std::size_t field = 0; field < near->info().fields.size(); ++field)
      EXPECT_TRUE(std::ranges::equal(a.fields[field], b.fields[field]));
  }
}

TEST_F(KeptIndexes, InASetBesideTheDataServeEveryMachine) {
  const IndexResult result = index_dataset(s3("bucket/web/"), {.to = local_ / "set"});
  EXPECT_EQ(result.records, 6 * kShards);
  EXPECT_EQ(result.shards, kShards);
  EXPECT_GT(result.bytes, 0U);
  const std::uint64_t fingerprint = open_source(s3("bucket/web/"), Split::kTrain)->info().fingerprint;
  for (std::uint64_t shard = 0; shard < kShards; ++shard) {
    put("bucket/copied/" + name(shard) + ".tar", read_whole_file(local_ / ("bucket/web/" + name(shard) + ".tar")));
  }
  put("bucket/copied/.headrace-index", read_whole_file(local_ / "set"));
  keep_in(local_ / "elsewhere");
  server_.misbehave([](const ServedRequest& request) {
    const auto range = request.headers.find("range");
    const bool head = range != request.headers.end() && range->second.starts_with("bytes=0-");
    const bool served = head || request.path() == "/bucket/" || request.path().ends_with(".headrace-index");
    return served ? Misbehaviour::kNone : Misbehaviour::kDenied;
  });
  EXPECT_EQ(open_source(s3("bucket/copied/"), Split::kTrain)->info().fingerprint, fingerprint);
  EXPECT_EQ(path_kind(local_ / "elsewhere"), PathKind::kMissing) << "nothing had to be read";
  server_.misbehave({});
  expect_as_local(s3("bucket/copied/"), local_ / "bucket/copied");
}

TEST_F(KeptIndexes, InADamagedSetAreMadeAnew) {
  const std::filesystem::path file = local_.write("large/a.tar", tar_of_images(40, 1'000'000));
  index_dataset(file, {.to = local_ / "set"});
  const std::uint64_t fingerprint = open_source(file, Split::kTrain)->info().fingerprint;
  const Bytes good = read_whole_file(local_ / "set");
  int number = 0;
  const auto opens_by = [&](const Bytes& set) {
    const std::string folder = "copy-" + std::to_string(number++);
    local_.write(folder + "/.headrace-index", set);
    std::filesystem::create_hard_link(file, local_ / (folder + "/a.tar"));
    keep_in(local_ / (folder + "-kept"));
    EXPECT_EQ(open_source(local_ / (folder + "/a.tar"), Split::kTrain)->info().fingerprint, fingerprint);
    return path_kind(local_ / (folder + "-kept")) == PathKind::kMissing;
  };
  EXPECT_TRUE(opens_by(good)) << "of the same bytes in another folder";
  for (const Bytes& cut : {Bytes(), Bytes(good.begin(), good.begin() + 30), Bytes(good.begin(), good.end() - 1)}) {
    EXPECT_FALSE(opens_by(cut));
  }
  for (std::size_t at = 12; at < good.size(); at += good.size() / 11) {
    Bytes damaged = good;
    damaged[at] ^= std::byte{4};
    EXPECT_FALSE(opens_by(damaged)) << at;
  }
}

TEST_F(KeptIndexes, AreRefusedOfWhatHasNone) {
  EXPECT_THAT(message_of([&] { index_dataset(local_ / "images.tar"); }), HasSubstr("nothing here has an index"));
  EXPECT_THAT(message_of([&] { index_dataset(at("images.tar"), {.to = at("set")}); }),
              HasSubstr("nothing can be written there"));
  ::setenv("HEADRACE_INDEX_FOLDER", "off", 1);
  EXPECT_THAT(message_of([&] { index_dataset(at("images.tar")); }), HasSubstr("is off"));
}

}  // namespace
}  // namespace headrace::test
