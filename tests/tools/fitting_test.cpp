// Data that are not for a recipe or a pipeline, or nothing that is read at all: what fits is said.
#include <fmt/format.h>

#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

void write_images_of_size(const TempFolder& folder, int height, int width) {
  for (int i = 0; i < 4; ++i) {
    const Bytes jpeg = encode_jpeg(make_picture(height, width, 3, static_cast<std::uint64_t>(i)));
    folder.write(fmt::format("train/{}/{}.jpg", i % 2, i), jpeg);
    folder.write(fmt::format("test/{}/{}.jpg", i % 2, i), jpeg);
  }
}

TEST(Fitting, ARecipeForOtherDataNamesThoseThatFit) {
  const TempFolder folder;
  write_images_of_size(folder, 32, 32);
  const CommandResult result = headrace({"train", "--recipe", "mnist-mlp", "--data", folder.path().string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.errors,
            "headrace: recipe mnist-mlp wants images of 28 x 28 x 1 in 10 classes, stored as pixels; " +
                folder.path().string() +
                " has 32 x 32 x 3 in 2 classes, JPEG or PNG\n  hint: cifar10-cnn, cifar10-fast, "
                "cifar10-fast-b, cifar10-resnet18, images-small, images-resnet18 fit this data\n");
}

TEST(Fitting, ARecipeForOneSizeNamesThoseForAny) {
  const TempFolder folder;
  write_images_of_size(folder, 40, 60);
  const CommandResult result = headrace({"train", "--recipe", "cifar10-cnn", "--data", folder.path().string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors, HasSubstr(" has 40 x 60 x 3 in 2 classes, JPEG or PNG\n"));
  EXPECT_THAT(result.errors, EndsWith("  hint: images-small, images-resnet18 fit this data\n"));
}

TEST(Fitting, WithoutARecipeTheDataChooseOne) {
  const TempFolder folder;
  write_images_of_size(folder, 32, 32);
  for (const std::vector<std::string>& recipe : std::vector<std::vector<std::string>>{{}, {"--recipe", "auto"}}) {
    std::vector<std::string> train{"train",    "--data", folder.path().string(), "--devices", "cpu",
                                   "--epochs", "1",      "--global-batch",       "2"};
    train.insert(train.end(), recipe.begin(), recipe.end());
    const CommandResult result = headrace(train);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("Recipe: cifar10-cnn, which fits the data\n"));
  }
}

TEST(Fitting, WhereNoRecipeFitsTheDataAreNotTrainedOn) {
  const TempFolder folder;
  folder.write("x_train.npy", make_npy("<f4", "(4, 40, 60, 3)", Bytes(4 * 40 * 60 * 3 * 4)));
  folder.write("y_train.npy", make_npy("<i8", "(4,)", Bytes(4 * 8)));
  const CommandResult result = headrace({"train", "--data", folder.path().string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(
      result.errors,
      "headrace: no recipe fits " + folder.path().string() +
          ", which has 40 x 60 x 3 in 1 classes\n  hint: mnist-mlp, fashion-mnist want images of 28 "
          "x "
          "28 x 1 in 10 classes, stored as pixels; cifar10-cnn, cifar10-fast, cifar10-fast-b, cifar10-resnet18 "
          "want images of 32 x 32 x 3 in 10 classes; images-small, images-resnet18 want images of any size in any "
          "number of classes; for other data write a custom net in C++ or Python\n");
}

TEST(Fitting, APipelineForOtherDataNamesThoseThatFit) {
  const TempFolder folder;
  write_images_of_size(folder, 32, 32);
  const CommandResult jpeg = headrace({"digest", "--pipeline", "mnist-train", "--data", folder.path().string()});
  EXPECT_EQ(jpeg.status, 2);
  EXPECT_EQ(jpeg.errors,
            "headrace: the pipeline wants images that are stored as pixels of one size; " +
                folder.path().string() +
                " has JPEG or PNG images\n  hint: pipelines that fit this data: cifar-eval, cifar-train, "
                "jpeg-eval, jpeg-train, jpeg-train-float, skewed\n");
  const auto grey = folder.write("image.npy", make_npy("|u1", "(4, 28, 28, 1)", Bytes(4 * 28 * 28)));
  const CommandResult colour = headrace({"digest", "--pipeline", "cifar-train", "--data", grey.string()});
  EXPECT_EQ(colour.status, 2);
  EXPECT_EQ(colour.errors,
            "headrace: the pipeline wants images with 3 channels; " + grey.string() +
                " has images of shape (28, 28, 1)\n  hint: pipelines that fit this data: fashion-train, "
                "jpeg-eval, jpeg-train, mnist-train, skewed\n");
}

TEST(Fitting, TheFormatsAreListedWhereverNothingIsRecognised) {
  const TempFolder folder;
  const Bytes poem = to_bytes("a river runs through it\n");
  folder.write("empty/.keep", Bytes());
  std::filesystem::remove(folder / "empty/.keep");
  folder.write("other/poem.txt", poem);
  folder.write("poem.txt", poem);
  folder.write("nothing", Bytes());
  folder.write("poem.txt.gz", gzip(poem));
  folder.write("poem.txt.zst", zstd(poem));
  const Bytes tar = TarBuilder().add("poem.txt", poem).finish();
  folder.write("poem.tar", tar);
  folder.write("poem.tar.gz", gzip(tar));
  folder.write("poem.zip", ZipBuilder().add("poem.txt", poem).finish());
  const std::string list =
      "Headrace reads: folders of images by class, or train/ and test/ of them; such images in a .tar, .tar.gz, "
      ".tar.zst or .zip; NumPy's .npy and .npz; WebDataset shards (.tar, .tar.gz, .tar.zst, .zip); TFRecord "
      "files, "
      "plain, gzip, zlib or zstd; CIFAR's binary version (.bin) in a folder; MNIST's IDX files in a folder, plain "
      "or "
      ".gz; a .csv with the columns path and label, or label and numbers; record files of headrace convert, also "
      "a folder "
      "of them\n";
  for (const char* name : {"empty", "other", "poem.txt", "nothing", "poem.txt.gz", "poem.txt.zst", "poem.tar",
                           "poem.tar.gz", "poem.zip", "not there"}) {
    const std::string data = (folder / name).string();
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"digest", "--pipeline", "jpeg-train"},
                                               {"ledger", "--pipeline", "jpeg-eval"},
                                               {"bench", "input", "--pipeline", "jpeg-train"},
                                               {"explain", "--pipeline", "cifar-train"},
                                               {"train", "--recipe", "mnist-mlp"},
                                               {"convert", "--to", (folder / "out").string()},
                                               {"doctor"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--data", data});
      const CommandResult result = headrace(arguments);
      EXPECT_THAT(result.errors, EndsWith(list)) << command.front() << " " << data;
      EXPECT_EQ(result.status, 1) << result.errors;
    }
  }
}

}  // namespace
}  // namespace headrace::test
