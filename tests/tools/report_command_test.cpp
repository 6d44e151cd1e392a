// `headrace report`: real runs, whole and cut, as the data of their pages and as a browser draws them.
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tests/tools/report/page_reader.h"
#include "headrace/tests/tools/spoilt_images.h"

namespace headrace::test {
namespace {

std::vector<nlohmann::json> history_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<std::string> train_line(const std::filesystem::path& data, const std::filesystem::path& run,
                                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> line{
      "train",      "--recipe",  "mnist-mlp", "--data", data.string(),    "--devices", "cpu:2",
      "--epochs",   "2",         "--verbose", "0",      "--global-batch", "10",        "--run-dir",
      run.string(), "--threads", "1"};  // statistics begin anew where the engine changes their number
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

std::string four(const nlohmann::json& value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value.get<double>());
  return text;
}

// Returns a fact of the run; null if there is none of that name.
nlohmann::json fact(const nlohmann::json& page, const std::string& name) {
  for (const nlohmann::json& one : page["facts"]) {
    if (one[0] == name) return one[1];
  }
  return nullptr;
}

class ReportCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_digits(digits_, 10'200); }

  void train(const std::filesystem::path& run, const std::vector<std::string>& more = {}) const {
    const CommandResult result = headrace(train_line(digits_.path(), run, more));
    ASSERT_EQ(result.status, 0) << result.errors;
  }

  TempFolder digits_, work_;
};

TEST_F(ReportCommand, ShowsARunWithItsFigures) {
  const auto run = work_ / "run";
  train(run);
  const CommandResult result = headrace({"report", run.string()});
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, (run / "report.html").string() + "\n");
  EXPECT_EQ(result.errors, "");
  const nlohmann::json page = read_page(run / "report.html");
  ASSERT_TRUE(page.is_object());
  EXPECT_EQ(page["title"], "mnist-mlp: finished");
  const auto history = history_lines(run / "history.jsonl");
  ASSERT_EQ(history.size(), 3U);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const char* key : {"loss", "accuracy", "val_loss", "val_accuracy", "learning_rates", "seconds"}) {
      EXPECT_EQ(page["epochs"][i][key], history[i][key]) << key;
    }
  }
  EXPECT_EQ(page["ends"][0]["test_loss"], history[2]["test_loss"]);
  EXPECT_EQ(fact(page, "weights' SHA-256"), history[2]["weights_sha256"]);
  EXPECT_EQ(page["model"], text_of(run / "model.txt"));
  EXPECT_EQ(page["plan"], text_of(run / "plan.txt"));
  EXPECT_THAT(fact(page, "command").get<std::string>(),
              StartsWith("headrace train --recipe mnist-mlp --data " + digits_.path().string()));
  EXPECT_EQ(page["timeline"].size(), history_lines(run / "timeline.jsonl").size());
  const nlohmann::json input = nlohmann::json::parse(text_of(run / "input.json"));
  EXPECT_EQ(page["input"]["stages"], input["stages"]);
  EXPECT_EQ(page["input"]["verdict"], input["verdict"]["sentence"]);
  EXPECT_EQ(page["input"]["what_ifs"].size(), input["verdict"]["what_ifs"].size());
}

TEST_F(ReportCommand, ABrowserDrawsThePage) {
  const auto run = work_ / "r<u>n";
  train(run, {"--runs", "2"});
  work_.write("r<u>n/plan.txt", "</script><script>document.title = 'taken'</script>");
  ASSERT_EQ(headrace({"report", run.string()}).status, 0);
  const std::string page = drawn_page(run / "report.html");
  if (page.empty()) GTEST_SKIP() << "needs Chromium";
  EXPECT_THAT(page, HasSubstr("<title>mnist-mlp: finished</title>"));
  for (const char* heading :
       {"All trainings of this run", "Curves", "Saturation", "Pipeline", "Epochs", "The run"}) {
    EXPECT_THAT(page, HasSubstr("<h2>" + std::string(heading) + "</h2>"));
  }
  for (const char* caption :
       {"loss, training and validation", "accuracy, training and validation", "training rate",
        "learning rate after the epoch", "devices standing still: why", "training rate over time"}) {
    EXPECT_THAT(page,
                HasSubstr("<figcaption>" + std::string(caption) + "</figcaption><div class=\"plot\"><canvas"));
  }
  const auto history = history_lines(run / "history.jsonl");
  for (std::size_t i : {3, 4}) {  // of the last training
    for (const char* key : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
      EXPECT_THAT(page, HasSubstr("<td>" + four(history[i][key]) + "</td>"));
    }
  }
  for (std::size_t i : {2, 5}) EXPECT_THAT(page, HasSubstr("<td>" + four(history[i]["test_loss"]) + "</td>"));
  EXPECT_THAT(page, HasSubstr("<p>The devices stood still for "));
  EXPECT_THAT(page, HasSubstr("title=\"assemble: "));
  EXPECT_THAT(page, HasSubstr("r&lt;u&gt;n</dd>"));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;document.title")) << "as text";
}

// Input stall is the devices', of the trainer; consumer wait that of the thread which asks, of the engine.
TEST_F(ReportCommand, StallAndWaitHaveAWordEach) {
  const auto run = work_ / "run";
  train(run);
  ASSERT_EQ(headrace({"report", run.string()}).status, 0);
  const nlohmann::json page = read_page(run / "report.html");
  EXPECT_TRUE(page["standstill"]["stalled"].is_number());
  const nlohmann::json input = nlohmann::json::parse(text_of(run / "input.json"));
  EXPECT_EQ(page["input"]["summary"], input["summary"]);
  EXPECT_THAT(input["summary"].get<std::string>(), AllOf(HasSubstr("; consumer wait "), Not(HasSubstr("stall"))));
  EXPECT_TRUE(input.contains("consumer_wait_fraction")) << input;
  EXPECT_FALSE(input.contains("input_stall_fraction")) << input;
  const std::string script = text_of(run / "report.html");
  EXPECT_THAT(script, HasSubstr("of the time; input stall is "));
  EXPECT_THAT(script, HasSubstr("Consumer wait is not input stall: "));
  EXPECT_THAT(script, Not(HasSubstr("devices waited")));
}

// What the engine counted is of the training alone: two epochs of 20 steps, without each epoch's first.
TEST_F(ReportCommand, TheRunMeasuresItsInput) {
  const auto run = work_ / "run";
  train(run);
  const nlohmann::json input = nlohmann::json::parse(text_of(run / "input.json"));
  EXPECT_EQ(input["batches"], 38);
  EXPECT_EQ(input["examples"], 380);
  EXPECT_GT(input["verdict"]["ceiling_images_per_second"], 0);
  const auto timeline = history_lines(run / "timeline.jsonl");
  ASSERT_FALSE(timeline.empty());
  EXPECT_EQ(timeline.back()["step"], 40);
  EXPECT_GT(timeline.back()["examples_per_second"], 0);
  const nlohmann::json about = nlohmann::json::parse(text_of(run / "run.json"));
  EXPECT_EQ(about["status"], "finished");
  EXPECT_EQ(about["replicas"], 2);
}

TEST_F(ReportCommand, ShowsARunThatWasInterrupted) {
  const auto run = work_ / "run";
  const std::string script =
      "\"$@\" & train=$!\n"
      "while [ ! -s \"$0/history.jsonl\" ]; do sleep 0.02; done\n"
      "kill -INT $train; wait $train";
  std::vector<std::string> line{"/bin/sh", "-c", script, run.string(), HEADRACE_BINARY};
  for (const std::string& argument : train_line(digits_.path(), run)) line.push_back(argument);
  *std::ranges::find(line, "2") = "1000000";
  const CommandResult cut = run_command(line);
  ASSERT_EQ(cut.status, 130) << cut.errors;
  const CommandResult result = headrace({"report", run.string()});
  ASSERT_EQ(result.status, 0) << result.errors;
  const nlohmann::json page = read_page(run / "report.html");
  EXPECT_EQ(page["title"], "mnist-mlp: interrupted");
  EXPECT_THAT(page["timeline"], Not(IsEmpty()));
  EXPECT_THAT(page["input"]["stages"], Not(IsEmpty()));
}

TEST_F(ReportCommand, ShowsARunThatFailed) {
  const auto data = write_spoilt_images(work_);
  const auto run = work_ / "run";
  const CommandResult failed = headrace({"train", "--recipe", "fashion-mnist", "--data", data.string(),
                                         "--devices", "cpu:1", "--run-dir", run.string()});
  ASSERT_EQ(failed.status, 1);
  const CommandResult result = headrace({"report", run.string()});
  ASSERT_EQ(result.status, 0) << result.errors;
  const nlohmann::json page = read_page(run / "report.html");
  EXPECT_EQ(page["title"], "fashion-mnist: failed");
  const std::string reason = nlohmann::json::parse(text_of(run / "run.json"))["reason"];
  EXPECT_THAT(failed.errors, HasSubstr(reason));
  EXPECT_EQ(page["reason"], reason);
}

TEST_F(ReportCommand, ShowsARunThatWasKilled) {
  const auto run = work_ / "run";
  train(run);
  nlohmann::ordered_json about = nlohmann::ordered_json::parse(text_of(run / "run.json"));
  for (const char* key : {"status", "ended", "seconds"}) about.erase(key);
  work_.write("run/run.json", about.dump());
  const std::string history = text_of(run / "history.jsonl");
  work_.write("run/history.jsonl", history.substr(0, history.find('\n') + 20));
  std::filesystem::remove(run / "input.json");
  const CommandResult result = headrace({"report", run.string()});
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr((run / "history.jsonl").string() + ": line 2 is damaged"));
  const nlohmann::json page = read_page(run / "report.html");
  EXPECT_EQ(page["title"], "mnist-mlp: cut off");
  const std::vector<std::string> notes = page["notes"];
  EXPECT_THAT(notes, Contains(HasSubstr("input.json is missing")));
  EXPECT_THAT(notes, Contains(HasSubstr("did not write its end")));
  EXPECT_THAT(page["input"]["stages"], IsEmpty());
}

TEST_F(ReportCommand, NamesMayHoldMarkup) {
  const auto data = work_ / "a <b> & \"c\" 'd' é";
  std::filesystem::create_directory_symlink(digits_.path(), data);
  const auto run = work_ / "r<u>n & 'é' \"";
  const CommandResult trained = headrace(train_line(data, run));
  ASSERT_EQ(trained.status, 0) << trained.errors;
  ASSERT_EQ(headrace({"report", run.string()}).status, 0);
  const nlohmann::json page = read_page(run / "report.html");
  EXPECT_EQ(fact(page, "data"), data.string());
  EXPECT_EQ(fact(page, "run folder"), run.string());
  EXPECT_THAT(fact(page, "command").get<std::string>(), HasSubstr("--data '")) << "quoted, for a shell";
}

TEST_F(ReportCommand, TakesTheNewestOfSeveralRuns) {
  const auto runs = work_ / "runs";
  train(runs, {"--seed", "11"});
  train(runs, {"--seed", "22", "--runs", "2"});
  const CommandResult newest = headrace({"report", runs.string(), "--out", (work_ / "new.html").string()});
  ASSERT_EQ(newest.status, 0) << newest.errors;
  EXPECT_THAT(newest.errors, HasSubstr("This is run 2 of 2 runs"));
  const nlohmann::json page = read_page(work_ / "new.html");
  EXPECT_THAT(page["others"].get<std::string>(), HasSubstr("This is run 2 of 2 runs"));
  EXPECT_EQ(fact(page, "seed"), "22");
  EXPECT_EQ(page["ends"].size(), 2U) << "all trainings of this run";
  EXPECT_FALSE(std::filesystem::exists(runs / "run-2/report.html"));
  ASSERT_EQ(headrace({"report", runs.string(), "--run", "1"}).status, 0);
  EXPECT_EQ(fact(read_page(runs / "report.html"), "seed"), "11");
  const CommandResult gone = headrace({"report", runs.string(), "--run", "7"});
  EXPECT_EQ(gone.status, 1);
  EXPECT_THAT(gone.errors, HasSubstr("there are: 1, 2"));
}

TEST_F(ReportCommand, DestroysNothing) {
  const auto run = work_ / "run";
  train(run);
  ASSERT_EQ(headrace({"report", run.string()}).status, 0);
  ASSERT_EQ(headrace({"report", run.string()}).status, 0) << "a report is replaced";
  const FolderContents before = contents_of(work_.path());
  for (const char* name : {"history.jsonl", "run.json", "model.txt", "timeline.jsonl"}) {
    const CommandResult result = headrace({"report", run.string(), "--out", (run / name).string()});
    EXPECT_EQ(result.status, 2) << name;
    EXPECT_THAT(result.errors, HasSubstr("--out would overwrite"));
  }
  EXPECT_EQ(headrace({"report", run.string(), "--out", run.string()}).status, 2) << "a folder";
  EXPECT_EQ(headrace({"report", run.string(), "--out", (work_ / "no/such.html").string()}).status, 1);
  EXPECT_EQ(contents_of(work_.path()), before);
  work_.write("run/report.html", "my own notes");
  const CommandResult refused = headrace({"report", run.string()});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.errors, HasSubstr("was not made by headrace report"));
  EXPECT_EQ(text_of(run / "report.html"), "my own notes");
  const CommandResult printed = headrace({"report", run.string(), "--out", "-"});
  EXPECT_EQ(printed.status, 0);
  EXPECT_THAT(printed.output, StartsWith("<!DOCTYPE html>"));
}

}  // namespace
}  // namespace headrace::test
