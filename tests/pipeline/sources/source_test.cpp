#include "headrace/pipeline/record.h"

#include <gmock/gmock.h>

#include "headrace/devices/base/error.h"

namespace headrace::test {
namespace {

TEST(FindFieldTest, FindsByNameOrListsTheNames) {
  Fields fields(2);
  fields[0].name = "image";
  fields[1].name = "label";
  EXPECT_EQ(find_field(fields, "image"), 0U);
  EXPECT_EQ(find_field(fields, "label"), 1U);
  try {
    find_field(fields, "labels");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'labels'"));
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("image, label"));
  }
  EXPECT_THROW(find_field({}, "image"), ConfigError);
}

}  // namespace
}  // namespace headrace::test
