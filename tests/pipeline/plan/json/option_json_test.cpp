// Options and sources that a program hands over as JSON.
#include "headrace/pipeline/option_json.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

TEST(OptionJson, SetsWhatItHolds) {
  const auto loader = options_from_json<LoaderOptions>(
      R"({"epochs": 3, "on_error": "skip", "quarantine": "bad.jsonl", "start": "headrace-loader-2 00000000000000aa 7 0 -",
          "world_replicas": 4, "converted": "bfloat16"})",
      "loader");
  EXPECT_EQ(loader.epochs, 3U);
  EXPECT_EQ(loader.errors.on_error, OnError::kSkip);
  EXPECT_EQ(loader.errors.quarantine, "bad.jsonl");
  EXPECT_EQ(loader.start, (LoaderState{.fingerprint = 0xAA, .sequence = 7}));
  EXPECT_EQ(loader.world.total, 4);
  EXPECT_EQ(loader.converted, DType::kBF16);
  EXPECT_EQ(loader.seed, 0U);
  EXPECT_EQ(options_from_json<InspectOptions>("", "inspection", {.max_listed = 9}).max_listed, 9U);
}

TEST(OptionJson, OfConversions) {
  const auto split = [](const std::string& json) {
    return options_from_json<ConvertOptions>(json, "conversion", {.split = Split::kTest}).split;
  };
  EXPECT_EQ(split("{}"), Split::kTest);
  EXPECT_EQ(split(R"({"split": "train"})"), Split::kTrain);
  EXPECT_EQ(split(R"({"split": "all"})"), std::nullopt);
  const auto read = options_from_json<ConvertOptions>(
      R"({"classes_at": "2", "columns": ["a"], "label_type": "number", "max_bad_share": 0.5})", "conversion");
  EXPECT_EQ(read.source.layout.classes_at, "2");
  EXPECT_EQ(read.source.columns.columns, std::vector<std::string>{"a"});
  EXPECT_EQ(read.source.columns.label_type, LabelType::kNumber);
  EXPECT_EQ(read.errors.max_bad_share, 0.5);
}

TEST(OptionJson, RefusalsNameTheWholeAndThePlace) {
  const auto of = [](const std::string& json) {
    return message_of([&] { options_from_json<LoaderOptions>(json, "loader"); });
  };
  EXPECT_THAT(of(R"({"epohcs": 3})"),
              StartsWith("loader: there is no option \"epohcs\": did you mean 'epochs'? (it has seed, epochs, "));
  EXPECT_THAT(of(R"({"epochs": -3})"), StartsWith("loader at epochs: -3 where a whole number from 0 to"));
  EXPECT_THAT(
      of(R"({"resident": "sometimes"})"),
      StartsWith("loader at resident: \"sometimes\" is not among the choices (write auto, never or always)"));
  EXPECT_THAT(of("7"), StartsWith("loader: 7 where an object is needed"));
  EXPECT_THAT(of("{"), StartsWith("loader: is no JSON: line 1, column 2"));
}

TEST(OpenDataset, RefusalsNameTheOpener) {
  const auto of = [](const std::string& path, const std::string& options) {
    return message_of([&] { open_dataset(path, options); });
  };
  EXPECT_THAT(of("x", R"({"as": "web_datset"})"),
              StartsWith("plan: there is no source \"web_datset\": did you mean 'web_dataset'? (write named, "));
  EXPECT_THAT(of("x", R"({"spilt": "test"})"),
              StartsWith("plan at open: there is no option \"spilt\": did you mean"));
  EXPECT_THAT(of("x", R"({"path": "y"})"), StartsWith("plan at path: the path is given twice"));
  EXPECT_THAT(of("", R"({"split": "test"})"), StartsWith("plan at open: 'path' is missing"));
}

TEST(WithStage, TakesPartsByTheirNames) {
  const PlanParts parts{
      .filters = {{.name = "third", .keeps = [](const ExampleView& view) { return view.label() % 3 == 0; }}}};
  const Dataset all = Dataset::from(noise_images(9, 8, 8));
  EXPECT_EQ(all.with_stage("filter", R"({"named": "third"})", parts).fingerprint(),
            all.filter(parts.filters[0]).fingerprint());
  EXPECT_THAT(message_of([&] { all.with_stage("filter", R"({"named": "third"})"); }),
              StartsWith("plan at filter: the filter \"third\" is code, and is not among the parts"));
}

}  // namespace
}  // namespace headrace::test
