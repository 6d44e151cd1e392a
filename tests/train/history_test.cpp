#include "headrace/tests/support/test.h"
#include "headrace/train/callbacks.h"

namespace headrace::test {
namespace {

TEST(History, KeepsOneListAMetric) {
  History history;
  history.append("loss", 2.0);
  history.append("loss", 1.0);
  history.append("accuracy", 0.5);
  EXPECT_EQ(history["loss"], (std::vector<double>{2.0, 1.0}));
  EXPECT_TRUE(history.has("accuracy"));
  EXPECT_FALSE(history.has("val_loss"));
}

TEST(History, AnUnknownNameListsTheNames) {
  History history;
  history.append("loss", 2.0);
  EXPECT_NE(std::string(error_of<ConfigError>([&] { history["lost"]; }).what()).find("it has loss"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::test
