// One's own photographs: JPEG and PNG files of many sizes in a folder a class, from `headrace train` to `predict`
// and `evaluate` with the record alone.
#include <fmt/format.h>

#include "headrace/pipeline/decoders/jpeg_writer.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/report/page_reader.h"

namespace headrace::test {
namespace {

constexpr const char* kClasses[] = {"earth", "sea", "sky"};

// A picture with some of everything, but tinted: red, green or blue.
Picture tinted(int height, int width, int tint, std::uint64_t seed) {
  Picture picture = make_picture(height, width, 3, seed);
  for (std::size_t i = 0; i < picture.samples.size(); ++i) {
    const int value = picture.samples[i] / 2 + (static_cast<int>(i % 3) == tint ? 110 : 0);
    picture.samples[i] = static_cast<std::uint8_t>(value);
  }
  return picture;
}

Bytes as_jpeg(const Picture& picture) {
  Bytes encoded;
  write_jpeg(picture.samples, {.height = picture.height, .width = picture.width}, 90, encoded);
  return encoded;
}

class Photographs : public ::testing::Test {
 protected:
  // Sizes differ from image to image; some are smaller than any crop.
  void write_classes(int images) const {
    for (int i = 0; i < images; ++i) {
      for (int tint = 0; tint < 3; ++tint) {
        const int height = 9 + (i * 37 + tint * 11) % 90, width = 12 + (i * 53 + tint * 7) % 110;
        const Picture picture = tinted(height, width, tint, static_cast<std::uint64_t>(i * 3 + tint));
        const std::string name = fmt::format("{}/{:03}", kClasses[tint], i);
        i % 4 == 0 ? data_.write(name + ".png", encode_png(picture))
                   : data_.write(name + ".jpg", as_jpeg(picture));
      }
    }
  }
  std::string record() const { return (work_ / "record.safetensors").string(); }
  std::vector<std::string> train(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{
        "train", "--data", data_.path().string(), "--devices", "cpu", "--image-size", "32", "--record", record()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  const TempFolder data_, work_;
};

TEST_F(Photographs, AreLearntAndNamed) {
  write_classes(24);
  const Lines lines = json_of(train({"--epochs", "6", "--seed", "1"}));
  EXPECT_GT(lines.back()["test_accuracy"].get<double>(), 0.7) << "three classes by their colour";
  for (int i = 0; i < 6; ++i) {  // side by side, with no class anywhere
    work_.write(fmt::format("new/{}.jpg", i), as_jpeg(tinted(30 + 9 * i, 70 - 8 * i, i % 3, 100U + i)));
  }
  const std::vector<std::string> predict{"predict", "--record", record(),     "--devices",
                                         "cpu",     "--data",   work_ / "new"};
  const Lines found = json_of(predict);
  ASSERT_EQ(found.size(), 6U);
  int right = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["name"], fmt::format("{}.jpg", i));
    EXPECT_FALSE(found[i].contains("label")) << "nobody knows it";
    EXPECT_EQ(found[i]["values"].size(), 3U);
    right += found[i]["class"] == kClasses[i % 3] ? 1 : 0;
  }
  EXPECT_GE(right, 5);

  const std::string csv = work_ / "out.csv";
  ASSERT_EQ(headrace(predict, {"--out", csv}).status, 0);
  std::ifstream file(csv);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, AllOf(HasSubstr("name,record,label,label_class,prediction,class,earth,sea,sky\n"),
                          HasSubstr("\n5.jpg,5,,,")));
  for (const char* name : {"out.npy", "out.npz"}) {
    const CommandResult written = headrace(predict, {"--out", work_ / name});
    EXPECT_EQ(written.status, 0) << written.errors;
  }
  EXPECT_GT(std::filesystem::file_size(work_ / "out.npz"), std::filesystem::file_size(work_ / "out.npy"));
  EXPECT_EQ(std::filesystem::file_size(work_ / "out.npy"), 128U + 6 * 3 * sizeof(float));

  const std::string page = work_ / "page.html";
  const CommandResult evaluated = headrace({"evaluate", "--record", record(), "--data", data_.path().string(),
                                            "--split", "train", "--devices", "cpu", "--report", page});
  EXPECT_EQ(evaluated.status, 0) << evaluated.errors;
  const nlohmann::json shown = read_page(page);
  EXPECT_THAT(shown["classes"], Contains("sea"));
  EXPECT_EQ(shown["matrix"].size(), 3U);
  EXPECT_THAT(shown["worst"], Not(IsEmpty()));
  EXPECT_THAT(shown["worst"].dump(), HasSubstr("\"sea\""));
}

// What is taken along is read and changes nothing that is learnt; the record can be evaluated without it.
TEST_F(Photographs, ColumnsMayBeTakenAlong) {
  write_classes(8);
  const std::vector<std::string> options{"--epochs", "1", "--seed", "1", "--recipe", "images-small"};
  const Lines alone = json_of(train(options));
  for (const char* name : kClasses) {
    for (int i = 0; i < 8; ++i) data_.write(fmt::format("{}/{:03}.json", name, i), "{\"weight\": 0.5}");
  }
  std::vector<std::string> with = options;
  with.insert(with.end(), {"--columns", "json.weight"});
  EXPECT_EQ(json_of(train(with)).back()["test_loss"], alone.back()["test_loss"]);
  EXPECT_EQ(headrace({"evaluate", "--record", record(), "--data", data_.path().string(), "--split", "train",
                      "--devices", "cpu"})
                .status,
            0);
  std::vector<std::string> wrong = options;
  wrong.insert(wrong.end(), {"--columns", "json.wait"});
  const CommandResult refused = headrace(train(wrong));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("member 'json' has no value 'wait'"));
}

TEST_F(Photographs, AllThatIsHeldOutIsSaid) {
  write_classes(10);
  const CommandResult result = headrace(train({"--epochs", "1"}));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("Recipe: images-small, which fits the data\n"),
                                   HasSubstr("Images: 32 x 32 pixels, 3 classes\n"),
                                   HasSubstr("Validation: 1 image in 10 of the train split, 3 images\n"),
                                   HasSubstr("Test: the validation images, too; ")));
}

TEST_F(Photographs, TheLargeNetTrainsToo) {
  write_classes(3);
  const CommandResult result = headrace(train(
      {"--recipe", "images-resnet18", "--epochs", "1", "--steps-per-epoch", "1", "--validation-split", "0.3"}));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("Validation: 1 image in 3 of the train split, 3 images\n"));
}

TEST_F(Photographs, ABadOneIsNamedOrLeftOut) {
  write_classes(10);
  data_.write("sea/000x.jpg", to_bytes("no image at all"));
  const CommandResult failed = headrace(train({"--epochs", "1"}));
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.errors, HasSubstr("sea/000x.jpg"));
  const CommandResult skipped = headrace(train({"--epochs", "1", "--on-error", "skip", "--max-bad-share", "0.9"}));
  EXPECT_EQ(skipped.status, 0) << skipped.errors;
  EXPECT_THAT(skipped.errors, HasSubstr("1 "));
}

TEST_F(Photographs, OneClassIsRefused) {
  for (int i = 0; i < 12; ++i) data_.write(fmt::format("only/{}.jpg", i), as_jpeg(tinted(20, 20, 0, 1U + i)));
  const CommandResult refused = headrace(train({"--epochs", "1"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("would be of one class, 'only'"));
  const CommandResult meant = headrace(train({"--epochs", "1", "--classes-at", "1"}));
  EXPECT_EQ(meant.status, 2);
  EXPECT_THAT(meant.errors, HasSubstr("two classes or more"));
}

TEST_F(Photographs, OptionsOfOtherRecipesAreRefused) {
  write_classes(2);
  const CommandResult small = headrace(train({"--recipe", "images-small", "--pretrained", "weights.safetensors"}));
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.errors, HasSubstr("images-resnet18"));
  const CommandResult missing = headrace(train({"--pretrained", work_ / "weights.safetensors"}));
  EXPECT_EQ(missing.status, 1) << "auto takes the net that has weights";
  EXPECT_THAT(missing.errors, AllOf(HasSubstr("weights.safetensors"), Not(HasSubstr("images-small"))));
}

}  // namespace
}  // namespace headrace::test
