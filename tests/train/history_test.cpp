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

TEST(History, KnowsWhichValuesAreBetter) {
  for (const char* name : {"accuracy", "val_accuracy", "top_5", "val_right/accuracy", "left/top_2"}) {
    EXPECT_TRUE(higher_is_better(name)) << name;
  }
  for (const char* name : {"loss", "val_loss", "seconds", "right/mse"})
    EXPECT_FALSE(higher_is_better(name)) << name;
  EXPECT_TRUE(higher_is_better("loss", Better::kHigher));
  EXPECT_FALSE(higher_is_better("accuracy", Better::kLower));
}

}  // namespace
}  // namespace headrace
