#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(Error, SaysWhatWasWrongAndWhatToDo) {
  const Error error(ErrorCode::kIo, "disk full", "delete something");
  EXPECT_STREQ(error.what(), "disk full (delete something)");
  EXPECT_EQ(error.message(), "disk full");
  EXPECT_EQ(error.hint(), "delete something");
  EXPECT_EQ(error.code(), ErrorCode::kIo);
}

TEST(Error, WithoutAHintIsTheMessageAlone) {
  EXPECT_STREQ(Error(ErrorCode::kIo, "disk full").what(), "disk full");
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(ConfigError, IsAnInvalidArgument) { EXPECT_EQ(ConfigError("no").code(), ErrorCode::kInvalidArgument); }

TEST(DataError, NamesTheKnownPartsOfItsPlace) {
  const DataError whole(ErrorCode::kDataCorrupt, "bad magic", {.source = "a.tar", .record = 7, .offset = 512});
  EXPECT_STREQ(whole.what(), "a.tar: bad magic, record 7, byte offset 512");
  EXPECT_EQ(whole.location().record, 7U);
  const DataError part(ErrorCode::kIo, "cannot open", {.source = "a.tar"}, "check the path");
  EXPECT_STREQ(part.what(), "a.tar: cannot open (check the path)");
  EXPECT_STREQ(DataError(ErrorCode::kIo, "lost", {}).what(), "lost");
}

TEST(DeviceError, NamesTheDevice) {
  const DeviceError error(ErrorCode::kDevice, "lost", "cuda:1", "restart");
  EXPECT_STREQ(error.what(), "cuda:1: lost (restart)");
  EXPECT_EQ(error.device(), "cuda:1");
}

TEST(Check, PassesOrThrowsAnInternalErrorWithThePlace) {
  EXPECT_NO_THROW(HEADRACE_CHECK(1 + 1 == 2, "arithmetic"));
  const Error error = error_of([&] { HEADRACE_CHECK(1 + 1 == 3, "arithmetic"); });
  EXPECT_EQ(error.code(), ErrorCode::kInternal);
  EXPECT_THAT(error.what(), HasSubstr("arithmetic [1 + 1 == 3 at "));
  EXPECT_THAT(error.what(), HasSubstr("error_test.cpp:"));
}

}  // namespace
}  // namespace headrace::test
