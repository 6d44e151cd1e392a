// The words of wrong usage, as they reach the user: whole texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/tests/tools/command_help.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct Wrong {
  std::vector<std::string> arguments;
  std::string errors;
};

const std::string kDigestHelp = "\n  hint: headrace digest --help shows what there is\n";

std::vector<std::string> digest(const std::vector<std::string>& more) {
  std::vector<std::string> all{"digest", "--pipeline", "trivial"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Words, OfWrongUsage) {
  const std::string commands =
      "\n  hint: there are: train, evaluate, predict, digest, ledger, bench, explain, cache, convert, report, "
      "doctor\n";
  const std::vector<Wrong> all{
      {{}, "headrace: headrace needs a command" + commands},
      {{"trian"}, "headrace: unknown command 'trian': did you mean 'train'?" + commands},
      {{"alchemy"}, "headrace: unknown command 'alchemy'" + commands},
      {{"bench", "inptu"},
       "headrace: unknown command 'bench inptu': did you mean 'input'?\n  hint: there are: input\n"},
      {{"cache", "verfy"},
       "headrace: unknown command 'cache verfy': did you mean 'verify'?\n  hint: there are: inspect, verify\n"},
      {{"cache", "verify"}, "headrace: headrace cache verify needs FOLDER\n  hint: the cache's folder\n"},
      {{"--hlep"},
       "headrace: unknown option '--hlep': did you mean '--help'?\n  hint: headrace --help shows what there is\n"},
      {{"digest", "--pipline", "trivial"},
       "headrace: unknown option '--pipline': did you mean '--pipeline'?" + kDigestHelp},
      {digest({"--nonsense"}), "headrace: unknown option '--nonsense'" + kDigestHelp},
      {digest({"--seed"}), "headrace: --seed needs a value" + kDigestHelp},
      {digest({"--seed", "--epochs", "2"}),
       "headrace: --seed needs a value, but --epochs follows it" + kDigestHelp},
      {digest({"--seed", "1", "--seed", "2"}), "headrace: --seed is given twice\n  hint: give it once\n"},
      {digest({"extra"}), "headrace: unexpected argument 'extra'" + kDigestHelp},
      {{"ledger", "--pipeline", "trivial", "--check=1"},
       "headrace: --check takes no value\n  hint: give it alone\n"},
      {{"doctor", "--examine", "3"}, "headrace: --examine requires --data\n"},
      {{"train", "--recipe", "mnist-mlp", "--runs", "2", "--trace", "x"},
       "headrace: --runs cannot be given together with --trace\n"},
  };
  for (const Wrong& wrong : all) {
    const CommandResult result = headrace(wrong.arguments);
    EXPECT_EQ(result.errors, wrong.errors);
    EXPECT_EQ(result.status, 2) << wrong.errors;
    EXPECT_EQ(result.output, "");
  }
}

TEST(Words, OfNumbers) {
  const std::vector<Wrong> all{
      {{"--prefetch", "2000"}, "--prefetch 2000: must be between 0 and 1024"},
      {{"--prefetch", "-1"}, "--prefetch -1: must be between 0 and 1024"},
      {{"--epochs", "0"}, "--epochs 0: must be at least 1"},
      {{"--epochs=0"}, "--epochs 0: must be at least 1"},
      {{"--seed", "-1"}, "--seed -1: must be a whole number from 0 to 18446744073709551615"},
      {{"--seed", "18446744073709551616"},
       "--seed 18446744073709551616: is too large: the maximum is 18446744073709551615"},
      {{"--global-batch", "12x"}, "--global-batch 12x: is not a number"},
      {{"--global-batch", ""}, "--global-batch '': is not a number"},
      {{"--global-batch", "1.5"}, "--global-batch 1.5: must be a whole number"},
      {{"--threads", "-1"}, "--threads -1: must be between 0 and 1024"},
      {{"--threads", "99999999999"}, "--threads 99999999999: is too large: the maximum is 1024"},
      {{"--max-bad-share", "2"}, "--max-bad-share 2: must be between 0 and 1"},
      {{"--max-bad-share", "nan"}, "--max-bad-share nan: is not a number"},
  };
  for (const Wrong& wrong : all) {
    const CommandResult result = headrace(digest(wrong.arguments));
    EXPECT_EQ(result.errors, "headrace: " + wrong.errors + "\n");
    EXPECT_EQ(result.status, 2);
  }
}

TEST(Words, NumbersAreDecimal) {
  const auto identity = [](const char* seed) { return headrace(digest({"--global-batch", seed})).output; };
  EXPECT_EQ(identity("0100000"), identity("100000"));
  EXPECT_EQ(identity("+100000"), identity("100000"));
}

TEST(Words, OfNames) {
  EXPECT_EQ(headrace(digest({"--on-error", "skp"})).errors,
            "headrace: --on-error skp: must be fail, skip or substitute: did you mean 'skip'?\n");
  EXPECT_EQ(headrace(digest({"--split", "both"})).errors, "headrace: --split both: must be train or test\n");
  EXPECT_EQ(
      headrace({"digest", "--pipeline", "trivail"}).errors,
      "headrace: --pipeline trivail is unknown: did you mean 'trivial'?\n  hint: must be cifar-eval, cifar-train, "
      "fashion-train, jpeg-eval, jpeg-train, jpeg-train-float, mnist-train, skewed or trivial\n");
  EXPECT_EQ(headrace({"train", "--recipe", "cifar10-fats"}).errors,
            "headrace: --recipe cifar10-fats is unknown: did you mean 'cifar10-fast'?\n  hint: must be auto, "
            "mnist-mlp, fashion-mnist, cifar10-cnn, cifar10-fast, cifar10-fast-b or cifar10-resnet18\n");
}

TEST(Words, OfHelp) {
  const std::vector<CommandPath> commands = all_commands();
  EXPECT_THAT(commands, IsSupersetOf<CommandPath>({{"train"}, {"predict"}, {"bench", "input"}, {"report"}}));
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.output, HasSubstr("\nUsage: headrace"));
    for (const char* of_parser : {"INT", "TEXT", "FLOAT", " in [", "POSITIVE", "REQUIRED", "Excludes", "Needs"}) {
      EXPECT_THAT(result.output, Not(HasSubstr(of_parser)));
    }
    std::size_t longest = 0, start = 0;
    for (std::size_t end; (end = result.output.find('\n', start)) != std::string::npos; start = end + 1) {
      longest = std::max(longest, end - start);
    }
    EXPECT_LE(longest, 100U) << result.output;
  }
  const std::string text = headrace({"digest", "--help"}).output;
  EXPECT_THAT(text, HasSubstr("Usage: headrace digest [OPTIONS]\n"));
  EXPECT_THAT(text,
              HasSubstr("  --prefetch N            batches made ahead of the consumer; 0 to 1024; default 2\n"));
  EXPECT_THAT(text, HasSubstr("  --seed N                the seed of all randomness; default 0\n"));
}

}  // namespace
}  // namespace headrace::test
