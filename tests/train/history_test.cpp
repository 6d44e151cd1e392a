#include "headrace/train/callbacks.h"

#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"

namespace headrace {
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
  try {
    history["lost"];
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("it has loss"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
