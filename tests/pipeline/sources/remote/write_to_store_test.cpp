// Conversions and indexes that are written to a store.
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/shard_writer.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"

namespace headrace::test {
namespace {

class WritesToStore : public RemoteTest {
 protected:
  WritesToStore() { put("photos.tar", tar_of_images(60)); }

  ConvertResult convert(const std::filesystem::path& to, std::uint64_t shard_bytes = 0) const {
    return convert_dataset(local_ / "photos.tar", to, {.shard_bytes = shard_bytes});
  }
};

TEST_F(WritesToStore, TheFileThatADiskGets) {
  convert(local_ / "one.records");
  const ConvertResult result = convert(s3("made/one.records"));
  const Bytes expected = read_whole_file(local_ / "one.records");
  EXPECT_EQ(server_.file("/made/one.records"), text_of(expected));
  EXPECT_EQ(result.bytes, expected.size());
  EXPECT_EQ(stream_of(decoded(s3("made/one.records"))), stream_of(decoded(local_ / "one.records")));
}

TEST_F(WritesToStore, ShardsAndGoesOnAfterAFault) {
  const ConvertResult local = convert(local_ / "set", 20'000);
  ASSERT_GT(local.shards, 3U);
  server_.misbehave([](const ServedRequest& request) {
    return request.method == "PUT" && request.target.find("-00003-of") != std::string::npos ? Misbehaviour::kDenied
                                                                                            : Misbehaviour::kNone;
  });
  EXPECT_THAT(error_of([&] { convert(s3("made/set/"), 20'000); }).what(),
              AllOf(HasSubstr("access is denied"), HasSubstr("-00003-of")));
  EXPECT_TRUE(server_.file(std::string("/made/set/") + kConversionMarker));
  server_.misbehave({});
  const ConvertResult result = convert(s3("made/set/"), 20'000);
  EXPECT_EQ(result.kept_shards, 3U);
  EXPECT_FALSE(server_.file(std::string("/made/set/") + kConversionMarker));
  for (const DirectoryEntry& shard : list_directory(local_ / "set")) {
    EXPECT_EQ(server_.file("/made/set/" + shard.path.filename().string()), text_of(read_whole_file(shard.path)));
  }
  EXPECT_EQ(stream_of(decoded(s3("made/set/"))), stream_of(decoded(local_ / "set")));
  EXPECT_THAT(message_of([&] { convert(s3("made/set/"), 20'000); }), HasSubstr("holds shards"));
}

TEST_F(WritesToStore, RecordsAsTheyCome) {
  const SourcePtr source = open_source(local_ / "photos.tar", Split::kTrain);
  const auto write = [&](const std::filesystem::path& to, std::uint64_t records) {
    ShardWriter writer(to, source->info().fields, source->info().classes, {.shard_bytes = 20'000});
    Bytes scratch;
    for (std::uint64_t i = 0; i < records; ++i) {
      const RecordView view = source->read(i, scratch);
      writer.append([&](RecordWriter& record) {
        for (std::size_t field = 0; field < 2; ++field) record.put(field, view.fields[field]);
      });
    }
    return records == source->info().records ? writer.finish() : ConvertResult{};
  };
  write(s3("made/set"), 30);
  EXPECT_THAT(error_of([&] { open_source(s3("made/set/"), Split::kTrain); }).what(), HasSubstr("unfinished"));
  write(local_ / "set", 60);
  const ConvertResult result = write(s3("made/set"), 60);
  EXPECT_GT(result.kept_shards, 0U);
  EXPECT_GT(result.shards, result.kept_shards);
  EXPECT_EQ(stream_of(decoded(s3("made/set/"))), stream_of(decoded(local_ / "set")));
}

TEST_F(WritesToStore, NotOverWhatIsRead) {
  EXPECT_THAT(message_of([&] { convert_dataset(s3("set/a.tar"), s3("set/a.tar"), {}); }),
              HasSubstr("would be overwritten"));
  EXPECT_THAT(message_of([&] { convert_dataset(s3("set/"), s3("set/more/a.records"), {}); }),
              HasSubstr("would lie in the folder that is read"));
  EXPECT_THAT(message_of([&] { convert(server_.url() + "/one.records"); }),
              HasSubstr("nothing can be written there"));
}

TEST_F(WritesToStore, AnIndexBesideTheData) {
  ::unsetenv("HEADRACE_INDEX_FOLDER");
  const TempFolder folder;
  ::setenv("HEADRACE_INDEX_FOLDER", folder.path().c_str(), 1);
  put("set/a.tar", tar_of_images(20));
  const IndexResult result = index_dataset(s3("set/a.tar"), {.to = s3("set/.headrace-index")});
  EXPECT_EQ(result.shards, 1U);
  EXPECT_TRUE(server_.file("/set/.headrace-index"));
}

}  // namespace
}  // namespace headrace::test
