// headrace convert and headrace cache.
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

// `headrace convert` as scripts use it: a data set becomes one file that gives the same batches.

TEST(ConvertCommand, PacksAndReportsItsKeys) {
  TempFolder folder;
  const std::string data = folder.write("a.tar", pack_images(make_image_files()).finish()).string();
  const std::string packed = (folder / "a.records").string();
  const CommandResult result = headrace({"convert", "--data", data, "--to", packed, "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto line = nlohmann::json::parse(result.output);
  EXPECT_EQ(line["records"], kTrainImages + kTestImages);
  EXPECT_EQ(line["bytes"], std::filesystem::file_size(packed));
  EXPECT_GE(line["seconds"], 0);

  const auto digest = [](const std::string& path) {
    return headrace(
        {"digest", "--pipeline", "jpeg-train", "--data", path, "--global-batch", "5", "--replicas", "2"});
  };
  const CommandResult before = digest(data), after = digest(packed);
  EXPECT_EQ(before.status, 0) << before.errors;
  EXPECT_FALSE(before.output.empty());
  EXPECT_EQ(before.output, after.output);
  EXPECT_EQ(headrace({"ledger", "--pipeline", "jpeg-train", "--data", packed, "--check"}).status, 0);
}

TEST(ConvertCommand, IntoAFolderTheFileIsCalledAfterTheData) {
  TempFolder folder;
  const Bytes tar = pack_images(make_image_files()).finish();
  for (const auto& [name, bytes] : make_image_files()) folder.write("many.photos/" + name, bytes);
  std::filesystem::create_directory(folder / "out");
  for (const auto& [data, packed] : std::vector<std::pair<std::string, std::string>>{
           {folder.write("a.tar", tar).string(), "a.records"},
           {folder.write("b.c.tar.zst", zstd(tar)).string(), "b.c.records"},
           {(folder / "many.photos").string(), "many.photos.records"},
           {(folder / "many.photos").string() + "/", "many.photos.records"}}) {
    const std::string written = (folder / "out" / packed).string();
    const CommandResult result =
        headrace({"convert", "--data", data, "--to", (folder / "out").string(), "--json", "-"});
    ASSERT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(nlohmann::json::parse(result.output)["file"], written);
    const CommandResult digest =
        headrace({"digest", "--pipeline", "jpeg-train", "--data", written, "--global-batch", "5"});
    EXPECT_EQ(digest.status, 0) << digest.errors;
    std::filesystem::remove(written);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder / "out"));
  // Where the file it would write is the data.
  const std::string to = (folder / "out").string();
  ASSERT_EQ(headrace({"convert", "--data", (folder / "a.tar").string(), "--to", to}).status, 0);
  const CommandResult same = headrace({"convert", "--data", to + "/a.records", "--to", to});
  EXPECT_EQ(same.status, 2);
  EXPECT_NE(same.errors.find("--to would overwrite " + to + "/a.records"), std::string::npos) << same.errors;
}

TEST(ConvertCommand, WritesShardsIntoAFolderThatIsThere) {
  TempFolder folder;
  const std::string data = folder.write("a.tar", pack_images(make_image_files()).finish()).string();
  for (const std::string format : {"records", "webdataset"}) {
    const std::string to = (folder / format).string();
    std::filesystem::create_directory(to);
    const std::vector<std::string> command{"convert",  "--data", data,           "--to", to,
                                           "--format", format,   "--shard-size", "2K"};
    const CommandResult result = headrace(command);
    ASSERT_EQ(result.status, 0) << result.errors;
    std::set<std::string> endings;
    for (const auto& file : std::filesystem::directory_iterator(to)) endings.insert(file.path().extension());
    EXPECT_EQ(endings, std::set<std::string>{format == "records" ? ".records" : ".tar"});
    const CommandResult again = headrace(command);
    EXPECT_EQ(again.status, 2);
    EXPECT_NE(again.errors.find("holds shards"), std::string::npos) << again.errors;
  }
}

TEST(ConvertCommand, ReadsShardsOnceWithoutAnIndex) {
  TempFolder folder;
  TarBuilder tar;
  for (int i = 0; i < 30; ++i) {
    tar.add(std::to_string(i) + ".jpg", encode_jpeg(make_picture(20, 20, 3, static_cast<std::uint64_t>(i))));
    tar.add(std::to_string(i) + ".cls", to_bytes(std::to_string(i % 3)));
  }
  const std::string data = folder.write("tars/train-0.tar", tar.finish()).parent_path().string();
  const CommandResult one = headrace(
      {"convert", "--data", data, "--no-index", "--split", "train", "--to", (folder / "a.records").string()});
  EXPECT_EQ(one.status, 2);
  EXPECT_THAT(one.errors, HasSubstr("--shard-size"));
  const CommandResult several = headrace({"convert", "--data", data, "--no-index", "--split", "train", "--to",
                                          (folder / "set").string(), "--shard-size", "4K", "--json", "-"});
  ASSERT_EQ(several.status, 0) << several.errors;
  EXPECT_EQ(nlohmann::json::parse(several.output)["records"], 30);
  EXPECT_GT(nlohmann::json::parse(several.output)["shards"], 2);
}

TEST(ConvertCommand, SaysWhatIsWrong) {
  TempFolder folder;
  const std::string data = folder.write("a.tar", pack_images(make_image_files()).finish()).string();
  const std::string to = (folder / "b").string();
  EXPECT_EQ(headrace({"convert", "--data", data}).status, 2);
  EXPECT_EQ(headrace({"convert", "--data", data, "--to", to, "--quality", "101"}).status, 2);
  EXPECT_EQ(headrace({"convert", "--data", data, "--to", to, "--split", "both"}).status, 2);
  const CommandResult missing = headrace({"convert", "--data", to, "--to", to});
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.errors.find(to), std::string::npos);
  EXPECT_NE(headrace({"--help"}).output.find("convert"), std::string::npos);
}

TEST(ConvertCommand, SaysWhichSplitThereIsNot) {
  TempFolder folder;
  std::map<std::string, Bytes> files;
  for (const auto& [name, bytes] : make_image_files()) {
    if (name.starts_with("train/")) files["all/" + name.substr(6)] = bytes;
  }
  const std::string data = folder.write("a.tar", pack_images(files).finish()).string();
  const CommandResult result = headrace({"convert", "--data", data, "--to", (folder / "b").string()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("no test split"), std::string::npos) << result.output;
}

// `headrace --cache FOLDER` and `headrace cache` as scripts use them.

class CacheCommand : public testing::Test {
 protected:
  std::string digest(const std::string& cache) {
    const CommandResult result = headrace({"digest", "--pipeline", "jpeg-train", "--data", data_, "--global-batch",
                                           "5", "--epochs", "2", "--cache", cache});
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(result.errors, "");
    return result.output;
  }

  TempFolder folder_;
  std::string data_ = folder_.write("a.tar", pack_images(make_image_files()).finish()).string();
  std::string cache_ = (folder_ / "cache").string();
};

TEST_F(CacheCommand, TheStreamIsTheSameColdAndWarmAndDamaged) {
  const std::string expected = digest("none");
  EXPECT_EQ(digest(cache_), expected) << "cold";
  EXPECT_EQ(digest(cache_), expected) << "warm";
  CommandResult result = headrace({"cache", "verify", cache_, "--json", "-"});
  EXPECT_EQ(result.status, 0) << result.errors;
  const auto line = nlohmann::json::parse(result.output);
  EXPECT_EQ(line["records"], kTrainImages);
  EXPECT_EQ(line["bad"], 0);
  EXPECT_GT(line["bytes"], 0);
  EXPECT_EQ(line["fingerprint"].get<std::string>().size(), 16U);
  EXPECT_EQ(headrace({"cache", "inspect", cache_}).status, 0);

  for (const auto& file : std::filesystem::recursive_directory_iterator(cache_)) {
    if (file.path().extension() != ".segment") continue;
    const auto bytes = read_whole_file(file.path());
    TempFolder::patch(file.path(), bytes.size() / 2, ~bytes[bytes.size() / 2]);
  }
  result = headrace({"cache", "verify", cache_});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("is damaged"), std::string::npos) << result.output;
  for (const std::string threads : {"1", "4"}) {
    EXPECT_EQ(headrace({"cache", "verify", cache_, "--threads", threads}).output, result.output) << threads;
  }
  EXPECT_EQ(digest(cache_), expected) << "damaged";
}

TEST_F(CacheCommand, SaysWhatIsWrong) {
  EXPECT_EQ(headrace({"cache", "verify", cache_}).status, 1) << "there is none";
  EXPECT_EQ(headrace({"cache"}).status, 2);
  const CommandResult result = headrace({"digest", "--pipeline", "jpeg-train", "--data", data_, "--cache", data_});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("not a folder"), std::string::npos) << result.errors;
}

// `headrace index` as scripts use it.
TEST(IndexCommand, WritesAndReportsItsKeys) {
  TempFolder folder;
  TarBuilder tar;
  const Bytes padding(std::size_t{33} << 20);
  tar.add("a/1.jpg", encode_jpeg(make_picture(8, 8, 3, 1))).add("b/2.jpg", encode_jpeg(make_picture(8, 8, 3, 2)));
  tar.add("notes", padding);
  const std::string data = folder.write("a.tar", tar.finish()).string();
  ::setenv("HEADRACE_INDEX_FOLDER", (folder / "kept").c_str(), 1);
  const CommandResult result = headrace({"index", data, "--to", folder.path().string(), "--json", "-"});
  const CommandResult again = headrace({"index", data, "--json", "-"});
  const CommandResult none = headrace({"index", (folder / "none").string()});
  const CommandResult input = headrace({"index", data, "--to", data});
  ::unsetenv("HEADRACE_INDEX_FOLDER");
  ASSERT_EQ(result.status, 0) << result.errors;
  for (const CommandResult& one : {result, again}) {
    const auto line = nlohmann::json::parse(one.output);
    EXPECT_EQ(line["records"], 2);
    EXPECT_EQ(line["shards"], 1);
    EXPECT_GT(line["bytes"], 0);
    EXPECT_GE(line["seconds"], 0);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / ".headrace-index"));
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(input.status, 2);
  EXPECT_EQ(headrace({"index"}).status, 2);
}

}  // namespace
}  // namespace headrace::test
