// A page of the command: the data in it, and what a browser makes of it.
#pragma once

#include <nlohmann/json.hpp>

#include "headrace/tests/support/command.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// Returns the data that the scripts of a page read; fails where they would read none.
inline nlohmann::json data_of(const std::string& page) {
  static const std::string kBegin = R"(<script id="data" type="application/json">)";
  const std::size_t begin = page.find(kBegin), end = page.find("</script", begin);
  EXPECT_NE(end, std::string::npos);
  if (end == std::string::npos) return nullptr;
  const std::size_t first = begin + kBegin.size();
  nlohmann::json data = nlohmann::json::parse(page.substr(first, end - first), nullptr, false);
  EXPECT_TRUE(data.is_object()) << page.substr(first, 200);
  return data;
}

inline nlohmann::json read_page(const std::filesystem::path& page) { return data_of(text_of(page)); }

// Returns the page as Chromium's scripts have drawn it; empty where there is no Chromium.
inline std::string drawn_page(const std::filesystem::path& page) {
  if (run_command({"/bin/sh", "-c", "command -v chromium"}).status != 0) return "";
  const TempFolder profile;
  const CommandResult result =
      run_command({"/usr/bin/env", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--user-data-dir=" + profile.path().string(), "--virtual-time-budget=5000", "--dump-dom",
                   "file://" + std::filesystem::absolute(page).string()});
  EXPECT_EQ(result.status, 0) << result.errors;
  return result.output;
}

}  // namespace headrace::test
