#include "headrace/devices/base/text.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using namespace std::string_literals;

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text : {"", "train/cat/0001.jpg", "C:\\x1b", "Käse, 猫, 🐈", "a  b"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(printable("e\033[31mvil"), "e\\x1b[31mvil");
  EXPECT_EQ(printable("two\nlines\tand\r"), "two\\nlines\\tand\\r");
  EXPECT_EQ(printable("a\0b\x7F"s), "a\\x00b\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m")
      << "a terminal's other escape";
  EXPECT_EQ(printable("cat\u202Egpj.exe"), "cat\\u202egpj.exe") << "turns the direction of writing";
}

TEST(Printable, WritesOutWhatIsNoUtf8) {
  EXPECT_EQ(printable("caf\xE9"), "caf\\xe9");
  EXPECT_EQ(printable("\xC0\x80 \xED\xA0\x80 \xF5\x80\x80\x80"), "\\xc0\\x80 \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80")
      << "overlong, half a pair, beyond the last";
  EXPECT_EQ(printable("\xE7\x8C"), "\\xe7\\x8c") << "cut short";
}

TEST(Printable, ChangesNothingTheSecondTime) {
  const std::string once = printable("a\n\033\xFF\u2028\\");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, KeepsTheNewlinesOfLines) { EXPECT_EQ(printable_lines("a\nb\033\n"), "a\nb\\x1b\n"); }

TEST(Printable, IsEveryError) {
  const std::string name = "e\033vil\nname\0and more"s;
  const DataError error(ErrorCode::kDataCorrupt, "bad", {.source = name, .record = 3}, "look at " + name);
  EXPECT_STREQ(error.what(),
               "e\\x1bvil\\nname\\x00and more: bad, record 3 (look at e\\x1bvil\\nname\\x00and more)");
  EXPECT_EQ(error.location().source, name) << "for programs every byte as it is";
}

TEST(DidYouMean, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("train", "train"), 0);
  EXPECT_EQ(edit_distance("Train", "train"), 0) << "upper and lower case are alike";
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("trian", "train"), 1) << "two letters swapped";
  EXPECT_EQ(edit_distance("trin", "train"), 1);
  EXPECT_EQ(edit_distance("traain", "train"), 1);
  EXPECT_EQ(edit_distance("brain", "train"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(DidYouMean, TakesTheNearest) {
  const std::vector<std::string> names{"cifar10-cnn", "cifar10-fast", "cifar10-fast-b", "mnist-mlp"};
  EXPECT_EQ(nearest("cifar10-fats", names), "cifar10-fast");
  EXPECT_EQ(nearest("cifar10-fastb", names), "cifar10-fast") << "the first among equals";
  EXPECT_EQ(nearest("mnist", names), "mnist-mlp") << "the beginning of a name";
  EXPECT_EQ(nearest("mlp-mnist", names), "");
  EXPECT_EQ(nearest("alchemy", names), "");
  EXPECT_EQ(nearest("x", {"-h", "y"}), "y") << "one letter may differ";
  EXPECT_EQ(nearest("train", {}), "");
}

TEST(DidYouMean, IsAQuestionOrNothing) {
  EXPECT_EQ(did_you_mean("trian", {"digest", "train"}), ": did you mean 'train'?");
  EXPECT_EQ(did_you_mean("alchemy", {"digest", "train"}), "");
}

TEST(DidYouMean, LooksAtWhatIsThere) {
  const TempFolder folder;
  folder.write("photos/train/cat/0.jpg", "x");
  const std::string root = folder.path().string();
  EXPECT_EQ(did_you_mean_path(root + "/fotos"), ": did you mean '" + root + "/photos'?");
  EXPECT_EQ(did_you_mean_path(root + "/photo/train"), ": did you mean '" + root + "/photos/train'?");
  EXPECT_EQ(did_you_mean_path(root + "/photo/tests"), ": did you mean '" + root + "/photos'?");
  EXPECT_EQ(did_you_mean_path(root + "/photos/tarin/cat"), ": did you mean '" + root + "/photos/train/cat'?");
  EXPECT_EQ(did_you_mean_path(root + "/alchemy"), "");
  EXPECT_EQ(did_you_mean_path(root + "/photos"), "") << "is there";
  EXPECT_EQ(did_you_mean_path(""), "");
}

TEST(FitLine, KeepsTheImportantPartsInTheirOrder) {
  const std::vector<LinePart> parts = {{"10/10", 2}, {"7s", 1}, {"loss: 0.5", 0}};
  EXPECT_EQ(fit_line(parts, 22), "10/10 - 7s - loss: 0.5");
  EXPECT_EQ(fit_line(parts, 21), "7s - loss: 0.5");
  EXPECT_EQ(fit_line(parts, 13), "loss: 0.5");
  EXPECT_EQ(fit_line(parts, 8), "7s") << "what is shorter may still fit";
  EXPECT_EQ(fit_line(parts, 0), "");
  EXPECT_EQ(fit_line({}, 80), "");
}

}  // namespace
}  // namespace headrace::test
