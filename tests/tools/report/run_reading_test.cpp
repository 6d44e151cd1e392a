// Folders of runs as they are found: whole, cut, damaged, several in one.
#include "headrace/tools/report/run_reading.h"
#include "headrace/tests/support/test.h"
#include "headrace/tools/report/run_choice.h"

namespace headrace::tools {
namespace {

using test::TempFolder;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kEpochs = "{\"epoch\":1,\"loss\":0.5}\n{\"epoch\":2,\"loss\":0.25}\n";
const std::string kFinal = "{\"final\":true,\"test_loss\":0.3}\n";

void write_whole_run(const TempFolder& folder, const std::string& below = "") {
  folder.write(below + "history.jsonl", kEpochs + kFinal);
  folder.write(below + "run.json", R"({"recipe": "mnist-mlp", "status": "finished"})");
  folder.write(below + "input.json", R"({"examples": 3})");
  folder.write(below + "timeline.jsonl", "{\"training\":1,\"begin_seconds\":0,\"end_seconds\":1}\n");
  folder.write(below + "model.txt", "a net");
  folder.write(below + "plan.txt", "a plan");
}

TEST(RunReading, OfAWholeRunHasNoNotes) {
  const TempFolder folder;
  write_whole_run(folder);
  const RunReading run = read_run(folder.path());
  EXPECT_THAT(run.notes, IsEmpty());
  ASSERT_THAT(run.trainings, SizeIs(1));
  EXPECT_THAT(run.trainings[0].epochs, SizeIs(2));
  EXPECT_EQ(run.trainings[0].final["test_loss"], 0.3);
  EXPECT_THAT(run.timeline, SizeIs(1));
  EXPECT_EQ(run.model, "a net");
  EXPECT_EQ(run.plan, "a plan");
  EXPECT_FALSE(run.going_on);
}

TEST(RunReading, SaysWhatIsMissing) {
  const TempFolder folder;
  folder.write("history.jsonl", kEpochs);
  const RunReading run = read_run(folder.path());
  EXPECT_TRUE(run.trainings[0].final.is_null());
  for (const std::string name : {"run.json", "timeline.jsonl", "input.json", "model.txt", "plan.txt"}) {
    EXPECT_THAT(run.notes, Contains(HasSubstr(name + " is missing"))) << name;
  }
  EXPECT_THAT(run.notes, SizeIs(5));
}

TEST(RunReading, NamesDamagedLinesAndReadsTheOthers) {
  const TempFolder folder;
  write_whole_run(folder);
  folder.write("history.jsonl",
               "{\"epoch\":1,\"loss\":0.5}\n{\"epoch\":2,\"los\n[3]\n{\"epoch\":\"x\"}\n" + kFinal);
  folder.write("timeline.jsonl",
               "{\"begin_seconds\":0,\"end_seconds\":1}\n{\"begin_seconds\":2,\"end_seconds\":1}\n\xFF\n");
  folder.write("input.json", "[]");
  const RunReading run = read_run(folder.path());
  EXPECT_THAT(run.trainings[0].epochs, SizeIs(1));
  EXPECT_FALSE(run.trainings[0].final.is_null());
  EXPECT_THAT(run.timeline, SizeIs(1));
  EXPECT_THAT(run.notes, Contains(HasSubstr("history.jsonl: lines 2, 3, 4 are damaged")));
  EXPECT_THAT(run.notes, Contains(HasSubstr("timeline.jsonl: lines 2, 3 are damaged")));
  EXPECT_THAT(run.notes, Contains(HasSubstr("input.json: this is no JSON object")));
}

TEST(RunReading, RefusesAHistoryThatIsNone) {
  const TempFolder folder;
  folder.write("history.jsonl", "the history\nof a king\n");
  const DataError error = test::error_of<DataError>([&] { read_run(folder.path()); });
  EXPECT_THAT(error.what(), HasSubstr("line 1 is no line of a history"));
  EXPECT_THAT(error.what(), HasSubstr("history.jsonl"));
}

TEST(RunReading, DividesARunOfSeveralTrainings) {
  const TempFolder folder;
  write_whole_run(folder);
  folder.write("history.jsonl", kEpochs + kFinal + kEpochs + kEpochs + kFinal);
  folder.write("timeline.jsonl",
               "{\"training\":1,\"begin_seconds\":0,\"end_seconds\":9}\n"
               "{\"training\":2,\"begin_seconds\":0,\"end_seconds\":4}\n");
  const RunReading run = read_run(folder.path());
  ASSERT_THAT(run.trainings, SizeIs(3));
  EXPECT_TRUE(run.trainings[1].final.is_null()) << "epochs began anew without an end";
  ASSERT_THAT(run.timeline, SizeIs(1));
  EXPECT_EQ(run.timeline[0]["end_seconds"], 4);
}

TEST(RunChoice, FindsNumberedRunsAndTheNewest) {
  const TempFolder folder;
  write_whole_run(folder);
  folder.write("run-2/history.jsonl", kEpochs);
  folder.write("run-10/history.jsonl", kEpochs);
  folder.write("run-x/history.jsonl", kEpochs);
  folder.write("run-3/notes.txt", "no run");
  const auto runs = runs_in(folder.path());
  ASSERT_THAT(runs, SizeIs(3));
  EXPECT_EQ(runs[0].path, folder.path());
  EXPECT_EQ(runs[1].number, 2U);
  EXPECT_EQ(newest_of(runs).number, 10U);
  // The number of a run that was removed is given again.
  folder.write("run-2/run.json", R"({"started": "2026-11-23T18:00:00Z"})");
  folder.write("run-10/run.json", R"({"started": "2026-11-22T18:00:00Z"})");
  EXPECT_EQ(newest_of(runs_in(folder.path())).number, 2U);
}

TEST(RunChoice, RefusesWhatHoldsNoRun) {
  const TempFolder folder;
  folder.write("notes.txt", "no run");
  for (const std::string name : {"", "notes.txt", "gone"}) {
    const DataError error = test::error_of<DataError>([&] { runs_in(folder / name); });
    EXPECT_THAT(error.what(), HasSubstr(name));
    EXPECT_THAT(error.hint(), HasSubstr("--run-dir"));
  }
}

}  // namespace
}  // namespace headrace::tools
