// The command for a part of the replicas.
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/support/command.h"

namespace headrace::test {
namespace {

CommandResult run_headrace(const std::string& arguments) {
  std::vector<std::string> words{HEADRACE_BINARY};
  std::istringstream in(arguments);
  for (std::string word; in >> word;) words.push_back(word);
  return run_command(words);
}

// Images of 0 and 1, and where they are.
struct FiftyImages {
  FiftyImages() {
    folder.write("train-images-idx3-ubyte", make_idx({50, 28, 28}));
    folder.write("train-labels-idx1-ubyte", make_idx({50}));
  }
  std::string options() const {
    return " --pipeline mnist-train --global-batch 12 --data " + folder.path().string() + " ";
  }
  TempFolder folder;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Of shares, of some replicas.
std::vector<std::string> lines_of_replicas(const std::string& text, int first, int count) {
  std::vector<std::string> kept;
  for (const std::string& line : lines_of(text)) {
    for (int r = first; r < first + count; ++r) {
      if (line.find(" replica " + std::to_string(r) + " ") != std::string::npos) kept.push_back(line);
    }
  }
  return kept;
}

TEST(WorldOptions, DigestPrintsTheLinesOfItsReplicasEqualToTheWholes) {
  const FiftyImages images;
  const std::string all = "digest --epochs 2" + images.options();
  const CommandResult whole = run_headrace(all + "--replicas 8 --per-replica");
  ASSERT_EQ(whole.status, 0) << whole.errors;
  EXPECT_THAT(whole.output, HasSubstr(" examples 12 ")) << "the batches are there, too";
  const CommandResult plain = run_headrace(all + "--replicas 8");
  EXPECT_EQ(lines_of(whole.output).back(), lines_of(plain.output).back());
  for (const int first : {0, 3, 6}) {
    const CommandResult part = run_headrace(all + "--world 8 --replicas 2 --first " + std::to_string(first));
    ASSERT_EQ(part.status, 0) << part.errors;
    std::vector<std::string> shares = lines_of(part.output);
    shares.pop_back();  // the digest of the part
    EXPECT_THAT(shares, ElementsAreArray(lines_of_replicas(whole.output, first, 2)));
  }
}

TEST(WorldOptions, LedgersOfPartsAddUp) {
  const FiftyImages images;
  const std::string all = "ledger" + images.options();
  const CommandResult whole = run_headrace(all + "--replicas 5");
  std::vector<std::string> parts;
  for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 3)}) {
    const CommandResult part =
        run_headrace(all + "--world 5 --replicas " + std::to_string(count) + " --first " + std::to_string(first));
    ASSERT_EQ(part.status, 0) << part.errors;
    const std::vector<std::string> lines = lines_of(part.output);
    parts.insert(parts.end(), lines.begin(), lines.end());
  }
  std::vector<std::string> expected = lines_of(whole.output);
  std::ranges::sort(expected);
  std::ranges::sort(parts);
  EXPECT_EQ(parts, expected);
}

TEST(WorldOptions, WhatCannotBeIsRefused) {
  const CommandResult outside = run_headrace("digest --pipeline trivial --world 4 --first 3 --replicas 2");
  EXPECT_EQ(outside.status, 2);
  EXPECT_THAT(outside.errors, HasSubstr("replicas 3 to 4 are not within a world of 4"));
  const CommandResult check = run_headrace("ledger --pipeline trivial --world 4 --replicas 2 --check");
  EXPECT_EQ(check.status, 2);
  EXPECT_THAT(check.errors, HasSubstr("--world"));
}

}  // namespace
}  // namespace headrace::test
