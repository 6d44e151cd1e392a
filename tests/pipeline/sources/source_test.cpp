#include "headrace/pipeline/record.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(FindFieldTest, FindsByNameOrListsTheNames) {
  Fields fields(2);
  fields[0].name = "image";
  fields[1].name = "label";
  EXPECT_EQ(find_field(fields, "image"), 0U);
  EXPECT_EQ(find_field(fields, "label"), 1U);
  const ConfigError error = error_of<ConfigError>([&] { find_field(fields, "labels"); });
  EXPECT_THAT(error.what(), HasSubstr("'labels'"));
  EXPECT_THAT(error.hint(), HasSubstr("image, label"));
  EXPECT_THROW(find_field({}, "image"), ConfigError);
}

}  // namespace
}  // namespace headrace::test
