#include "headrace/pipeline/loader.h"

#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

TEST(LoaderState, SurvivesBeingWritten) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF, .sequence = 98765};
  EXPECT_EQ(state.serialize(), "headrace-loader-1 0123456789abcdef 98765");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  EXPECT_EQ(LoaderState::parse(state.serialize() + "\n"), state);
}

TEST(LoaderState, RefusesAnythingElse) {
  for (const char* text :
       {"", "headrace-loader-2 0123456789abcdef 1", "headrace-loader-1 0123456789abcdef",
        "headrace-loader-1 0123456789abcdeg 1", "headrace-loader-1 0123456789abcdef 1x",
        "headrace-loader-1 0123456789abcdef -1", "headrace-loader-1 0123456789abcdef ", "headrace-loader-1 123 4",
        "headrace-loader-1 0123456789abcdef 99999999999999999999999"}) {
    EXPECT_THROW(LoaderState::parse(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace headrace
