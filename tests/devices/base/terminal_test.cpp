#include "headrace/devices/base/terminal.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

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
}  // namespace headrace
