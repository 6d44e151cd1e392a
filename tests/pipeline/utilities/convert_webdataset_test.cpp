// Data sets as tars in WebDataset's naming: read back, they are the same records.
#include "headrace/pipeline/convert.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

class ConvertWebDataset : public ::testing::Test {
 protected:
  ConvertWebDataset() {
    TarBuilder tar;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::string key = std::to_string(i);
      const Bytes picture =
          i % 3 == 0 ? encode_png(make_picture(9, 12, 3, i)) : encode_jpeg(make_picture(9, 12, 3, i));
      tar.add(key + (i % 3 == 0 ? ".png" : ".jpg"), picture);
      tar.add(key + ".cls", to_bytes(std::to_string(i % 7)));
      tar.add(key + ".txt", to_bytes("caption \xC3\xA9 " + std::string(i, 'x')));
      tar.add(key + ".seg.png", encode_png(make_picture(9, 12, 1, i)));
      std::string boxes;
      for (std::uint64_t box = 0; box < i % 4; ++box)
        boxes += (box == 0 ? "" : ",") + std::string("[1,2,") + std::to_string(box) + "]";
      tar.add(key + ".json", to_bytes("{\"boxes\": [" + boxes + "], \"score\": " + std::to_string(i) + ".5}"));
    }
    data_ = folder_.write("data.tar", tar.finish());
    options_.format = ConvertFormat::kWebDataset;
    options_.source.columns.columns = {"caption=txt", "seg=seg.png:mask", "boxes=json.boxes:list",
                                       "score=json.score"};
    options_.split = Split::kTrain;
  }

  // The same fields, as the members that they were written as.
  static SourcePtr read_back(const std::filesystem::path& path, bool indexed = true) {
    return web_dataset(path, {.members = {"caption=caption.txt:text", "seg=seg.png:mask", "boxes=boxes.npy:list",
                                          "score=score.npy"},
                              .indexed = indexed});
  }
  SourcePtr original() const { return open_source(data_, Split::kTrain, options_.source); }

  TempFolder folder_;
  std::filesystem::path data_;
  ConvertOptions options_;
};

TEST_F(ConvertWebDataset, GivesTheSameRecords) {
  const ConvertResult result = convert_dataset(data_, folder_ / "out.tar", options_);
  EXPECT_EQ(result.records, 40U);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(folder_ / "out.tar"));
  const SourcePtr back = read_back(folder_ / "out.tar");
  EXPECT_EQ(back->info().fields, original()->info().fields);
  EXPECT_EQ(read_all(*back), read_all(*original()));
}

TEST_F(ConvertWebDataset, GivesTheSameShardsHoweverOften) {
  options_.shard_bytes = 6'000;
  const ConvertResult result = convert_dataset(data_, folder_ / "set", options_);
  EXPECT_GT(result.shards, 2U);
  EXPECT_EQ(read_all(*read_back(folder_ / "set")), read_all(*original()));
  options_.threads = 3;
  convert_dataset(data_, folder_ / "again", options_);
  for (const DirectoryEntry& entry : list_directory(folder_ / "set"))
    EXPECT_EQ(text_of(entry.path), text_of(folder_ / "again" / entry.path.filename()));
  EXPECT_THAT(message_of([&] { convert_dataset(data_, folder_ / "set", options_); }), HasSubstr("holds shards"));
}

TEST_F(ConvertWebDataset, GoesOnAfterAFault) {
  options_.shard_bytes = 6'000;
  std::uint64_t stop = 25;
  options_.progress = [&](std::uint64_t done, std::uint64_t) {
    if (done == stop) throw std::runtime_error("stopped");
  };
  EXPECT_THROW(convert_dataset(data_, folder_ / "set", options_), std::runtime_error);
  stop = 0;
  const ConvertResult result = convert_dataset(data_, folder_ / "set", options_);
  EXPECT_GT(result.kept_shards, 0U);
  EXPECT_EQ(read_all(*read_back(folder_ / "set")), read_all(*original()));
}

TEST_F(ConvertWebDataset, RefusesWhatATarCannotHold) {
  const Bytes pixels(2 * 4 * 4 * 3), labels(16);
  const auto npz = folder_.write("raw.npy", make_npy("|u1", "(2, 4, 4, 3)", pixels, false));
  EXPECT_THAT(
      message_of([&] { convert_dataset(npz, folder_ / "raw.tar", {.format = ConvertFormat::kWebDataset}); }),
      HasSubstr("bytes of JPEG or PNG files"));
}

}  // namespace
}  // namespace headrace::test
