// What the command writes never destroys what the user has: outputs that are inputs or no files are refused, what
// exists is replaced by a finished file alone, and signals, full disks and closed pipes leave nothing behind.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

namespace fs = std::filesystem;
using Contents = FolderContents;

// A data set as a tar and as a folder, links to them, and files that are a user's own.
class Outputs : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto files = make_image_files();
    folder_.write("data.tar", pack_images(files).finish());
    for (const auto& [name, bytes] : files) folder_.write("images/" + name, bytes);
    folder_.write("notes.txt", "not of a data set\n");
    folder_.write("cache/segment", "0123456789");
    folder_.write("lists/bad.jsonl", "{\"source\":\"a\",\"record\":1}\n");
    fs::create_hard_link(folder_ / "data.tar", folder_ / "hard.tar");
    fs::create_symlink("data.tar", folder_ / "link.tar");
    fs::create_symlink(folder_ / "images", folder_ / "linked-images");
    fs::create_symlink("images/train/cat/0.jpg", folder_ / "link.jpg");
    fs::create_hard_link(folder_ / "images/train/dog/0.jpg", folder_ / "hard.jpg");
    folder_.write("elsewhere/9.jpg", files.begin()->second);
    fs::create_symlink(folder_ / "elsewhere/9.jpg", folder_ / "images/train/emu/9.jpg");
    fs::create_symlink("loop", folder_ / "loop");
  }

  // An argument that starts with @ is a path in the folder.
  CommandResult headrace(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{HEADRACE_BINARY};
    for (const std::string& argument : arguments) all.push_back(resolve(argument));
    return with_reading_apart(run_command(all));
  }

  // $0 is the command, $1 the folder.
  CommandResult shell(const std::string& script) const {
    return with_reading_apart(run_command({"/bin/sh", "-c", script, HEADRACE_BINARY, folder_.path().string()}));
  }

  std::string resolve(const std::string& argument) const {
    return argument.starts_with("@") ? (folder_ / argument.substr(1)).string() : argument;
  }

  TempFolder folder_;
};

struct Refusal {
  std::vector<std::string> arguments;
  int status;
  std::string words;
};

TEST_F(Outputs, AreRefusedWhereTheyWouldDestroyOrCannotBe) {
  const std::string mlp = "mnist-mlp";
  const std::vector<Refusal> refusals = {
      {{"convert", "--data", "@data.tar", "--to", "@data.tar"}, 2, "--to would overwrite"},
      {{"convert", "--data", "@data.tar", "--to", "@link.tar"}, 2, "which is --data"},
      {{"convert", "--data", "@data.tar", "--to", "@hard.tar"}, 2, "which is --data"},
      {{"convert", "--data", "@link.tar", "--to", "@data.tar"}, 2, "which is --data"},
      {{"convert", "--data", "@images", "--to", "@images/train/cat/0.jpg"}, 2, "a file in the folder of --data"},
      {{"convert", "--data", "@images", "--to", "@link.jpg"}, 2, "a file in the folder of --data"},
      {{"convert", "--data", "@images", "--to", "@hard.jpg"}, 2, "a file in the folder of --data"},
      {{"convert", "--data", "@images", "--to", "@elsewhere/9.jpg"}, 2, "a file in the folder of --data"},
      {{"convert", "--data", "@linked-images", "--to", "@images/test/cat/0.png"},
       2,
       "a file in the folder of --data"},
      {{"convert", "--data", "@images", "--to", "@images/train/new"}, 2, "would lie in the folder that is read"},
      {{"convert", "--data", "@linked-images", "--to", "@images/../images/new"}, 2, "would lie in the folder"},
      {{"convert", "--data", "@images", "--to", "@linked-images/test"}, 2, "would lie in the folder"},
      {{"convert", "--data", "@data.tar", "--to", "@no folder/a"}, 1, "make the folder"},
      {{"convert", "--data", "@data.tar", "--to", "@notes.txt/a"}, 1, "Not a directory"},
      {{"convert", "--data", "@data.tar", "--to", "@loop"}, 1, "cannot follow the links"},
      {{"convert", "--data", "@data.tar", "--to", "@new", "--json", "@data.tar"}, 2, "--json would overwrite"},
      {{"convert", "--data", "@data.tar", "--to", "@new", "--json", "@new"}, 2, "--to and --json both name"},
      {{"convert", "--data", "@data.tar", "--to", "@new", "--json", "@./cache/../new"}, 2, "both name"},
      {{"convert", "--data", "@data.tar", "--to", "@new", "--json", "@images"}, 2, "is a folder"},
      {{"convert", "--data", "@data.tar", "--to", "@new", "--json", "@no folder/a"}, 1, "make the folder"},
      {{"convert", "--data", "@not there", "--to", "@notes.txt"}, 1, "not there"},
      {{"digest", "--pipeline", "jpeg-train", "--data", "@data.tar", "--json", "@data.tar"}, 2, "--json would"},
      {{"digest", "--pipeline", "jpeg-train", "--data", "@images", "--json", "@link.jpg"}, 2, "--json would"},
      {{"digest", "--pipeline", "jpeg-train", "--data", "@data.tar", "--json", "@images"}, 2, "is a folder"},
      {{"digest", "--pipeline", "jpeg-train", "--data", "@not there", "--json", "@notes.txt"}, 1, "not there"},
      {{"digest", "--pipeline", "jpeg-train", "--data", "@not there", "--json", "@new"}, 1, "not there"},
      {{"digest", "--pipeline", "trivial", "--cache", "@cache", "--json", "@cache/segment"}, 2, "of --cache"},
      {{"digest", "--pipeline", "trivial", "--quarantine", "@data.tar"}, 2, "is not a quarantine file"},
      {{"digest", "--pipeline", "trivial", "--quarantine", "@notes.txt"}, 2, "is not a quarantine file"},
      {{"digest", "--pipeline", "trivial", "--quarantine", "@images"}, 2, "is a folder"},
      {{"digest", "--pipeline", "trivial", "--quarantine", "@no folder/a"}, 1, "cannot open for appending"},
      {{"digest", "--pipeline", "trivial", "--quarantine", "@lists/bad.jsonl", "--json", "@lists/bad.jsonl"},
       2,
       "--json and --quarantine both name"},
      {{"ledger", "--pipeline", "jpeg-train", "--data", "@data.tar", "--json", "@hard.tar"}, 2, "--json would"},
      {{"ledger", "--pipeline", "trivial", "--json", "@no folder/a"}, 1, "make the folder"},
      {{"bench", "input", "--pipeline", "jpeg-train", "--data", "@data.tar", "--json", "@link.tar"}, 2, "--json"},
      {{"bench", "input", "--pipeline", "trivial", "--json", "@no folder/a"}, 1, "make the folder"},
      {{"explain", "--pipeline", "jpeg-train", "--data", "@data.tar", "--json", "@data.tar"}, 2, "--json would"},
      {{"explain", "--pipeline", "jpeg-train", "--data", "@data.tar", "--trace", "@data.tar"}, 2, "--trace would"},
      {{"explain", "--pipeline", "trivial", "--trace", "@cache"}, 2, "is a folder"},
      {{"explain", "--pipeline", "trivial", "--trace", "@no folder/a"}, 1, "make the folder"},
      {{"explain", "--pipeline", "trivial", "--trace", "@new", "--json", "@new"},
       2,
       "--trace and --json both name"},
      {{"train", "--recipe", mlp, "--data", "@data.tar", "--json", "@data.tar"}, 2, "--json would overwrite"},
      {{"train", "--recipe", mlp, "--data", "@images", "--trace", "@link.jpg"}, 2, "--trace would overwrite"},
      {{"train", "--recipe", mlp, "--data", "@data.tar", "--trace", "@no folder/a"}, 1, "make the folder"},
      {{"train", "--recipe", mlp, "--data", "@data.tar", "--run-dir", "@notes.txt"}, 1, "cannot make the folder"},
      {{"cache", "inspect", "@cache", "--json", "@cache/segment"}, 2, "--json would overwrite"},
      {{"explain", "--pipeline", "trivial", "--try-cache", "@cache", "--json", "@cache/segment"},
       2,
       "of --try-cache"},
      {{"explain", "--pipeline", "trivial", "--try-cache", "@cache", "--trace", "@cache/segment"},
       2,
       "of --try-cache"},
      {{"cache", "verify", "@cache", "--json", "@no folder/a"}, 1, "make the folder"},
      {{"doctor", "--json", "@images"}, 2, "is a folder"},
      {{"doctor", "--json", "@no folder/a"}, 1, "make the folder"},
  };
  const Contents before = contents_of(folder_.path());
  for (const Refusal& refusal : refusals) {
    std::string line;
    for (const std::string& argument : refusal.arguments) line += argument + " ";
    SCOPED_TRACE(line);
    const CommandResult result = headrace(refusal.arguments);
    EXPECT_EQ(result.status, refusal.status) << result.errors;
    EXPECT_TRUE(result.errors.starts_with("headrace: ")) << result.errors;
    EXPECT_NE(result.errors.find(refusal.words), std::string::npos) << result.errors;
    EXPECT_LE(std::ranges::count(result.errors, '\n'), 2) << "one line and a hint: " << result.errors;
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(contents_of(folder_.path()), before);
  }
}

TEST_F(Outputs, WithoutPermissionIsAnErrorBeforeTheWork) {
  fs::permissions(folder_ / "notes.txt", fs::perms::owner_read);
  fs::permissions(folder_ / "cache", fs::perms::owner_read | fs::perms::owner_exec);
  // Root may do anything until it gives that up.
  const std::string bare = ::geteuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all " : "";
  if (shell(bare + "true").status != 0) GTEST_SKIP() << "cannot give up what root may do";
  for (const auto& [to, words] :
       std::map<std::string, std::string>{{"notes.txt", "cannot replace: Permission denied"},
                                          {"cache/new", "cannot create: Permission denied"}}) {
    for (const std::string arguments : {"convert --data \"$1/not there\" --to ", "doctor --json ",
                                        "explain --pipeline trivial --data \"$1/not there\" --trace "}) {
      SCOPED_TRACE(arguments + to);
      const CommandResult result = shell("exec " + bare + "\"$0\" " + arguments + "\"$1/" + to + "\"");
      EXPECT_EQ(result.status, 1);
      EXPECT_NE(result.errors.find(words), std::string::npos) << result.errors;
      EXPECT_EQ(text_of(folder_ / "notes.txt"), "not of a data set\n");
    }
  }
}

TEST_F(Outputs, ADeviceIsWrittenToAndStays) {
  // One of the test's own: a command that got it wrong would destroy the machine's.
  const fs::path null = folder_ / "null";
  if (::mknod(null.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0 || !std::ofstream(null)) {
    GTEST_SKIP() << "may not make a device here";
  }
  const Contents before = contents_of(folder_.path());
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"convert", "--data", "@data.tar", "--to", "@null"},
           {"convert", "--data", "@data.tar", "--to", "@null", "--json", "@null"},
           {"explain", "--pipeline", "trivial", "--seconds", "0.2", "--trace", "@null", "--json", "@null"},
           {"doctor", "--json", "@null"}}) {
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(contents_of(folder_.path()), before) << arguments[0];
  }
}

TEST_F(Outputs, APipeGetsTheBytesOfAFile) {
  ASSERT_EQ(headrace({"convert", "--data", "@data.tar", "--to", "@packed"}).status, 0);
  const CommandResult result = shell(
      "mkfifo \"$1/fifo\" && { cat \"$1/fifo\" >\"$1/got\" & }\n"
      "\"$0\" convert --data \"$1/data.tar\" --to \"$1/fifo\" || exit\n"
      "wait; test -p \"$1/fifo\"");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(text_of(folder_ / "got"), text_of(folder_ / "packed"));
}

TEST_F(Outputs, ALinkIsFollowed) {
  ASSERT_EQ(headrace({"convert", "--data", "@data.tar", "--to", "@packed"}).status, 0);
  fs::permissions(folder_ / "notes.txt", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("../notes.txt", folder_ / "cache/to-notes");
  fs::create_symlink("later", folder_ / "dangling");
  for (const auto& [link, target] :
       std::map<std::string, std::string>{{"@cache/to-notes", "@notes.txt"}, {"@dangling", "@later"}}) {
    ASSERT_EQ(headrace({"convert", "--data", "@data.tar", "--to", link}).status, 0);
    EXPECT_TRUE(fs::is_symlink(resolve(link)));
    EXPECT_FALSE(fs::is_symlink(resolve(target)));
    EXPECT_EQ(text_of(resolve(target)), text_of(folder_ / "packed"));
  }
  EXPECT_EQ(fs::status(folder_ / "notes.txt").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Outputs, StandardOutputByItsNameIsNotReplaced) {
  const CommandResult result = shell("\"$0\" doctor --json /dev/stdout >\"$1/out\" && cat \"$1/out\"");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("{\"name\":"), std::string::npos) << "the lines of --json";
  EXPECT_NE(result.output.find("ok       "), std::string::npos) << "and those for people: " << result.output;
}

TEST_F(Outputs, WhatExistsIsReplacedByWhatIsFinished) {
  EXPECT_EQ(headrace({"digest", "--pipeline", "jpeg-train", "--data", "@data.tar", "--json", "@notes.txt"}).status,
            0);
  EXPECT_NE(text_of(folder_ / "notes.txt").find("\"final\":true"), std::string::npos);
  EXPECT_EQ(text_of(folder_ / "notes.txt").find("not of a data set"), std::string::npos);
  EXPECT_EQ(headrace({"convert", "--data", "@data.tar", "--to", "@lists/bad.jsonl"}).status, 0);
  EXPECT_EQ(text_of(folder_ / "lists/bad.jsonl").find("\"source\":\"a\""), std::string::npos);
}

struct Ending {
  std::string signal;
  int status;
  std::string words;
  std::string arguments;  // of a command that would run for long
};

TEST_F(Outputs, ASignalLeavesWhatWasThere) {
  const std::string trivial = " --pipeline trivial --global-batch 50000 --json \"$1/notes.txt\" ";
  std::vector<Ending> endings = {
      {"INT", 130, "interrupted", "explain --seconds 100 --trace \"$1/trace\"" + trivial},
      {"TERM", 143, "terminated", "explain --seconds 100 --trace \"$1/trace\"" + trivial},
      {"INT", 130, "interrupted", "digest --epochs 1000000" + trivial},
      {"TERM", 143, "terminated", "digest --epochs 1000000" + trivial},
      {"INT", 130, "interrupted", "bench input --seconds 100" + trivial},
      {"TERM", 143, "terminated", "bench input --seconds 100" + trivial},
      {"HUP", 129, "hung up", "bench input --seconds 100" + trivial},
  };
  // It waits for whoever reads the pipe.
  endings.push_back(
      {"INT", 130, "interrupted", "convert --data \"$1/data.tar\" --to \"$1/pipe\" --json \"$1/notes.txt\""});
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  if (fs::exists(kFashion)) {
    endings.push_back({"TERM", 143, "terminated",
                       "train --recipe mnist-mlp --epochs 100000 --verbose 0 --trace \"$1/trace\" "
                       "--json \"$1/notes.txt\" --data " +
                           kFashion.string()});
  }
  const Contents before = contents_of(folder_.path());
  for (const Ending& ending : endings) {
    SCOPED_TRACE(ending.signal + " " + ending.arguments);
    const CommandResult result =
        shell("\"$0\" " + ending.arguments +
              " >/dev/null & pid=$!\n"
              "until ls \"$1\"/*.tmp >/dev/null 2>&1; do kill -0 $pid || exit; sleep 0.02; done\n"
              "kill -" +
              ending.signal + " $pid; wait $pid");
    EXPECT_EQ(result.status, ending.status) << result.errors;
    EXPECT_TRUE(result.errors.starts_with("headrace: ")) << result.errors;
    EXPECT_NE(result.errors.find(ending.words), std::string::npos) << result.errors;
    EXPECT_NE(result.errors.find(", the unfinished files are removed\n"), std::string::npos) << result.errors;
    EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
    EXPECT_EQ(contents_of(folder_.path()), before);
  }
}

TEST_F(Outputs, AFileThatGrowsTooLargeIsAnError) {
  const Contents before = contents_of(folder_.path());
  for (const std::string to : {"new", "notes.txt"}) {
    const CommandResult result =
        shell("ulimit -f 2; exec \"$0\" convert --data \"$1/data.tar\" --to \"$1/" + to + "\"");
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_NE(result.errors.find("File too large"), std::string::npos) << result.errors;
    EXPECT_NE(result.errors.find("ulimit -f"), std::string::npos) << result.errors;
    EXPECT_EQ(contents_of(folder_.path()), before);
  }
}

TEST_F(Outputs, StandardOutputThatIsFullIsAnError) {
  for (const std::string arguments :
       {"doctor", "doctor --json -", "digest --pipeline trivial --global-batch 99999", "--help", "--version",
        "ledger --pipeline trivial --global-batch 99999 --json -"}) {
    for (const std::string target : {">/dev/full", ">&-"}) {
      SCOPED_TRACE(arguments + " " + target);
      const CommandResult result = shell("exec \"$0\" " + arguments + " " + target);
      EXPECT_EQ(result.status, 1);
      EXPECT_NE(result.errors.find("headrace: cannot write to standard output"), std::string::npos)
          << result.errors;
    }
  }
}

// As other programs' lines do: whoever read them had enough.
TEST_F(Outputs, APipeThatIsClosedEndsTheCommandQuietly) {
  const Contents before = contents_of(folder_.path());
  for (const std::string arguments : {"digest --pipeline trivial --global-batch 1000 --epochs 1000000 --json -",
                                      "ledger --pipeline trivial --global-batch 1000",
                                      "ledger --pipeline trivial --global-batch 1000 --json -"}) {
    const CommandResult result =
        shell("{ \"$0\" " + arguments + " || echo \"status $?\" >&2; } | head -n 1 >/dev/null");
    EXPECT_EQ(result.errors, "status 141\n") << arguments;
  }
  EXPECT_EQ(contents_of(folder_.path()), before);
}

// The lines go elsewhere: that they are lost is said.
TEST_F(Outputs, AnotherPipeThatIsClosedIsAnError) {
  const CommandResult result = shell(
      "mkfifo \"$1/fifo\" && { head -n 1 <\"$1/fifo\" >/dev/null & }\n"
      "\"$0\" digest --pipeline trivial --global-batch 1000 --epochs 1000000 --json \"$1/fifo\"");
  EXPECT_EQ(result.status, 141);
  EXPECT_EQ(result.errors, "headrace: cannot write: the pipe that the output goes to is closed\n");
}

// Each is looked at before the data are.
TEST_F(Outputs, WhatCannotBeWrittenIsFoundBeforeTheWork) {
  const Contents before = contents_of(folder_.path());
  const std::string train = "train --recipe mnist-mlp --data \"$1/no data\" ";
  for (const std::string& arguments :
       {train + "--record", train + "--csv", train + "--trace", train + "--json", train + "--quarantine",
        std::string("explain --pipeline jpeg-train --data \"$1/no data\" --write-plan"),
        std::string("explain --pipeline jpeg-train --data \"$1/no data\" --trace"),
        std::string("predict --record \"$1/no record\" --data \"$1/no data\" --json"),
        std::string("evaluate --record \"$1/no record\" --data \"$1/no data\" --json"),
        std::string("convert --data \"$1/no data\" --json"), std::string("doctor --json"),
        std::string("digest --pipeline jpeg-train --data \"$1/no data\" --json"),
        std::string("ledger --pipeline jpeg-train --data \"$1/no data\" --json"),
        std::string("bench input --pipeline jpeg-train --data \"$1/no data\" --json")}) {
    const std::string more = arguments.starts_with("convert") ? " --to \"$1/packed\"" : "";
    const CommandResult result = shell("exec \"$0\" " + arguments + " \"$1/nodir/x\"" + more);
    EXPECT_EQ(result.status, 1) << arguments << result.errors;
    EXPECT_NE(result.errors.find("nodir/x: cannot "), std::string::npos) << arguments << ": " << result.errors;
    EXPECT_NE(result.errors.find("make the folder "), std::string::npos) << arguments << ": " << result.errors;
    EXPECT_EQ(contents_of(folder_.path()), before) << arguments;
  }
}

TEST_F(Outputs, TextForAClosedStreamGoesIntoNoFile) {
  const CommandResult result = shell("exec \"$0\" convert --data \"$1/data.tar\" --to \"$1/packed\" <&- >&- 2>&-");
  EXPECT_EQ(result.status, 1);
  ASSERT_EQ(headrace({"convert", "--data", "@data.tar", "--to", "@again"}).status, 0);
  EXPECT_EQ(text_of(folder_ / "packed"), text_of(folder_ / "again"));
}

TEST_F(Outputs, ARunFolderInUseGetsANumberedRun) {
  if (!fs::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  const std::vector<std::string> train = {
      "train",     "--recipe", "mnist-mlp",         "--data", kFashion.string(), "--epochs", "1", "--verbose", "0",
      "--devices", "cpu:1",    "--steps-per-epoch", "1",      "--run-dir",       "@runs"};
  CommandResult result = headrace(train);
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "");
  const Contents first = contents_of(folder_ / "runs");
  EXPECT_EQ(first.size(), 5U) << "one step: the input engine was not measured";
  for (const std::string number : {"2", "3"}) {
    result = headrace(train);
    ASSERT_EQ(result.status, 0) << result.errors;
    const std::string folder = resolve("@runs/run-" + number);
    EXPECT_EQ(result.output, resolve("@runs") + " holds a run already: this one goes to " + folder + "\n");
    EXPECT_EQ(contents_of(folder).size(), 5U);
  }
  for (const auto& [path, what] : first) EXPECT_EQ(contents_of(folder_ / "runs").at(path), what);
}

}  // namespace
}  // namespace headrace::test
