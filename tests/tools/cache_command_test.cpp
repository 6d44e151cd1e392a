// `headrace --cache FOLDER` and `headrace cache` as scripts use them.
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
