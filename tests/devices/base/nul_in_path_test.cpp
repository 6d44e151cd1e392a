// A path with a NUL byte is refused, never cut there.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/pipe.h"
#include "headrace/tests/support/folder_contents.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

TEST(NulInPath, IsRefusedByEveryCall) {
  const test::TempFolder folder;
  const std::filesystem::path beginning = folder.write("there", "text");
  const std::filesystem::path path = beginning.string() + std::string(1, '\0') + ".png";
  const std::vector<std::function<void()>> calls = {
      [&] { File::open(path); },          [&] { read_whole_file(path); },
      [&] { Pipe::open(path); },          [&] { FileWriter writer(path); },
      [&] { AppendFile file(path, {}); }, [&] { append_to_file(path, "more"); },
      [&] { make_folders(path); },        [&] { remove_file(path); },
      [&] { identity_of(path); },         [&] { list_directory(folder.path().string() + std::string(1, '\0')); },
  };
  const auto before = test::contents_of(folder.path());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i]();
      ADD_FAILURE() << "call " << i << " took it";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("\\x00"), std::string::npos) << i << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find("NUL"), std::string::npos) << i << ": " << error.what();
    }
  }
  EXPECT_EQ(path_kind(path), PathKind::kMissing);
  EXPECT_EQ(test::contents_of(folder.path()), before);
}

}  // namespace
}  // namespace headrace
