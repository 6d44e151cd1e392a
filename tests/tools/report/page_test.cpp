// The report: what is read of a run, and its page.
#include <regex>

#include "headrace/tests/support/test.h"
#include "headrace/tests/tools/report/page_reader.h"
#include "headrace/tools/report/page.h"
#include "headrace/tools/report/run_choice.h"
#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {
namespace {

using PageJson = nlohmann::json;
using namespace test;

// Pages as text, without a browser: what data they hold, and that nothing ends or leaves them.

RunReading small_run() {
  RunReading run{.folder = "runs/a",
                 .run = {},
                 .input = {},
                 .trainings = {{}},
                 .timeline = {},
                 .model = "",
                 .plan = "",
                 .notes = {}};
  run.trainings[0].epochs = {{{"epoch", 1}, {"loss", 0.5}, {"val_loss", 0.75}},
                             {{"epoch", 2}, {"loss", 0.25}, {"learning_rates", {0.1, "x", 0.01}}}};
  return run;
}

TEST(Page, IsOneFileThatLoadsNothing) {
  const std::string page = make_page(run_data(small_run()));
  EXPECT_THAT(page, StartsWith(kReportBegin));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("Chart.js v")) << "the library, with its licence's notice";
  EXPECT_THAT(page, AllOf(HasSubstr("<style>"), HasSubstr("<noscript>")));
  const std::regex foreign(
      R"re(<link|<img|<iframe|(src|href)\s*=|url\(|@import|fetch\(|XMLHttpRequest|innerHTML)re");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page, found, foreign)) << found.str();
}

TEST(Page, TextsOfUsersStayTexts) {
  for (const std::string text : {"</script><script>alert(1)</script>", "<!-- <script>",
                                 "a \"b\" 'c' & \\ \n\t\x01\x7F", "\u2028 \uFFFF é 漢字", "null</script>"}) {
    RunReading run = small_run();
    run.model = run.plan = text;
    run.run = {{"recipe", text}, {"command", text}, {"warnings", {text}}};
    run.notes = {text};
    const std::string page = make_page(run_data(run, text));
    const PageJson data = test::data_of(page);
    for (const char* key : {"model", "plan", "others"}) EXPECT_EQ(data[key], text);
    EXPECT_THAT(data["notes"], Contains(text));
    EXPECT_THAT(data["facts"], Contains(PageJson{"command", text}));
    EXPECT_EQ(data["title"], text + ": cut off");
  }
  RunReading run = small_run();
  run.model = "a\xFF\xC3";
  EXPECT_EQ(test::data_of(make_page(run_data(run)))["model"], "a\uFFFD\uFFFD");
}

TEST(RunData, HoldsTheEpochs) {
  const PageJson data = run_data(small_run());
  ASSERT_THAT(data["epochs"], SizeIs(2));
  EXPECT_EQ(data["epochs"][0], (PageJson{{"epoch", 1}, {"loss", 0.5}, {"val_loss", 0.75}}));
  EXPECT_EQ(data["epochs"][1]["learning_rates"], (PageJson{0.1, 0.01}));
  EXPECT_EQ(data["title"], "a run of headrace train: end not known");
  EXPECT_THAT(data["facts"], ElementsAre(PageJson{"run folder", "runs/a"}));
}

// A loss that became NaN is null in the run's files; numbers that no chart can show are, too; others are left out.
TEST(RunData, HoldsNumbersThatCanBeDrawn) {
  RunReading run = small_run();
  run.trainings[0].epochs[0] = {{"epoch", 1}, {"loss", nullptr}, {"norm", 1e200}, {"x", "text"}, {"y", {1, {2}}}};
  run.trainings[0].epochs[1] = {{"epoch", 2}, {"learning_rates", 3}, {"workers", {7}}};
  EXPECT_EQ(run_data(run)["epochs"][0], (PageJson{{"epoch", 1}, {"loss", nullptr}, {"norm", nullptr}}));
  EXPECT_EQ(run_data(run)["epochs"][1]["workers"], PageJson::array({PageJson::object()}));
}

TEST(RunData, HoldsTheWorkersOfTheLastEpoch) {
  RunReading run = small_run();
  for (PageJson& line : run.trainings[0].epochs) line["workers"] = {{{"worker", 0}}, {{"worker", 1}}};
  const PageJson data = run_data(run);
  EXPECT_FALSE(data["epochs"][0].contains("workers"));
  EXPECT_EQ(data["epochs"][1]["workers"], (PageJson{{{"worker", 0}}, {{"worker", 1}}}));
}

TEST(RunData, HoldsEachTrainingsEnd) {
  RunReading run = small_run();
  run.trainings[0].final = {{"final", true}, {"seed", 18'446'744'073'709'551'615U}, {"test_loss", 0.5}};
  run.trainings.push_back({.epochs = {{{"epoch", 1}}}, .final = {{"seed", 2}, {"weights_sha256", "f5"}}});
  run.run = {{"seed", 18'446'744'073'709'551'615U}, {"device_descriptions", {"A", "A", "B"}}, {"seconds", 2.5}};
  const PageJson data = run_data(run);
  EXPECT_EQ(data["ends"], (PageJson{{{"seed", "18446744073709551615"}, {"test_loss", 0.5}}, {{"seed", "2"}}}));
  EXPECT_THAT(data["epochs"], SizeIs(1)) << "of the last training";
  EXPECT_THAT(data["facts"], ElementsAre(PageJson{"that is", "A; B"}, PageJson{"seed", "18446744073709551615"},
                                         PageJson{"took", 2.5}, PageJson{"weights' SHA-256", "f5"},
                                         PageJson{"run folder", "runs/a"}));
}

PageJson sample(double begin, double end, double stall, double copies) {
  return {{"begin_seconds", begin},
          {"end_seconds", end},
          {"input_stall_fraction", stall},
          {"exposed_copy_fraction", copies},
          {"examples_per_second", 100 * begin}};
}

TEST(RunData, ThinsALongTimelineToMeans) {
  RunReading run = small_run();
  for (int i = 0; i < 30'000; ++i) run.timeline.push_back(sample(i, i + 1, i % 2 == 0 ? 0.2 : 0.4, 0.9));
  const PageJson data = run_data(run);
  ASSERT_THAT(data["timeline"], SizeIs(300));
  for (const PageJson& one : data["timeline"]) {
    EXPECT_THAT(one["shares"][0].get<double>(), DoubleNear(0.3, 1e-9));
    EXPECT_THAT(one["shares"][3].get<double>(), DoubleNear(0, 1e-9));
  }
  EXPECT_EQ(data["timeline"][0]["begin"], 0);
  EXPECT_EQ(data["timeline"][0]["end"], data["timeline"][1]["begin"]);
  EXPECT_THAT(data["timeline"][299]["rate"].get<double>(), DoubleNear(100 * 29'949.5, 1e-3));
  EXPECT_EQ(data["standstill"]["still"], 1) << "shares exceed the whole";
  EXPECT_THAT(data["standstill"]["stalled"].get<double>(), DoubleNear(0.3, 1e-9));
}

TEST(RunData, KeepsAShortTimelineInOrder) {
  RunReading run = small_run();
  EXPECT_TRUE(run_data(run)["standstill"].is_null());
  run.timeline = {sample(3, 4, 0.75, 0), sample(0, 1, 0.25, -1), {{"begin_seconds", 5}, {"end_seconds", 5}}};
  const PageJson data = run_data(run);
  ASSERT_THAT(data["timeline"], SizeIs(3));
  EXPECT_EQ(data["timeline"][0],
            (PageJson{{"begin", 0.0}, {"end", 1.0}, {"rate", 0.0}, {"shares", {0.25, 0.0, 0.0, 0.0}}}));
  EXPECT_EQ(data["timeline"][1]["begin"], 3);
  EXPECT_FALSE(data["timeline"][2].contains("rate"));
  EXPECT_EQ(data["standstill"], (PageJson{{"still", 0.5}, {"stalled", 0.5}}));
}

TEST(RunData, HoldsTheEnginesStagesAndVerdict) {
  RunReading run = small_run();
  run.input = PageJson::parse(
      R"({"examples": 9, "summary": "s", "stages": [{"name": "decode", "stage_kind": "decode", "threads": 2}, 7],
          "verdict": {"bottleneck": "decode", "sentence": "v", "what_ifs": [{"sentence": "w"}, {}, 3]}})");
  EXPECT_EQ(run_data(run)["input"], (PageJson{{"examples", 9.0},
                                              {"summary", "s"},
                                              {"stages",
                                               {{{"name", "decode"}, {"stage_kind", "decode"}, {"threads", 2}},
                                                {{"name", ""}, {"stage_kind", ""}}}},
                                              {"bottleneck", "decode"},
                                              {"verdict", "v"},
                                              {"what_ifs", PageJson::array({"w"})}}));
  for (const char* text : {"null", "{}", R"({"stages": []})", R"({"stages": 3, "verdict": 1})"}) {
    run.input = PageJson::parse(text);
    EXPECT_EQ(run_data(run)["input"]["stages"], PageJson::array()) << text;
  }
}

TEST(EvaluationData, HasTheMatrixAndTheMostFrequentConfusions) {
  EvaluationPage page{.title = "a on b", .figures = {{"loss", "0.5"}}, .classes = 3, .names = {"x", "y"}};
  page.confusion = {5, 1, 0, /**/ 2, 7, 0, /**/ 2, 0, 0};
  page.worst = {{.name = "7.jpg", .label = 2, .prediction = 0, .loss = 3.5}};
  const PageJson data = evaluation_data(page);
  EXPECT_EQ(data["classes"], (PageJson{"x", "y", "2"}));
  EXPECT_EQ(data["matrix"], (PageJson{{5, 1, 0}, {2, 7, 0}, {2, 0, 0}}));
  EXPECT_EQ(data["confusions"], (PageJson{{"y", "x", 2, 9}, {"2", "x", 2, 2}, {"x", "y", 1, 6}}));
  EXPECT_EQ(data["worst"], PageJson::array({{"7.jpg", "2", "x", 3.5}}));
  EXPECT_EQ(data["figures"], PageJson::array({{"loss", "0.5"}}));
  EXPECT_EQ(test::data_of(make_page(data)), data);
}

TEST(EvaluationData, OfManyClassesHasNoMatrix) {
  EvaluationPage page{.title = "t", .classes = 101};
  page.confusion.assign(101 * 101, 1);
  const PageJson data = evaluation_data(page);
  EXPECT_FALSE(data.contains("matrix"));
  EXPECT_THAT(data["confusions"], SizeIs(30));
  EXPECT_THAT(data["confusions"][0], ElementsAre("0", "1", 1, 101));
}

using test::TempFolder;
using testing::IsEmpty;

// Folders of runs as they are found: whole, cut, damaged, several in one.

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
