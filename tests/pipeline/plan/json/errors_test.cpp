// What is no plan is refused with the place, what was found there and what to write instead.
#include "headrace/tests/pipeline/plan/json/plan_json.h"

namespace headrace::test {
namespace {

class PlanJsonErrors : public ::testing::Test {
 protected:
  std::string refusal_of(const std::string& text) const {
    return message_of([&] { Dataset::from_json(text, {.parts = parts_}); });
  }
  // Of a plan with these stages, written as JSON.
  std::string refusal_of_stages(const std::string& stages) const {
    return refusal_of(R"({"headrace_plan": 2, "source": {"named": "images"}, "stages": [)" + stages + "]}");
  }

  PlanParts parts_{.sources = {{"images", noise_images(13, 8, 8)}, {"numbers", numbers(5)}}};
};

TEST_F(PlanJsonErrors, NameThePlace) {
  const std::vector<std::pair<std::string, std::string>> all{
      {R"({"map": [{"flip": {}}, {"pad_crop": {"pad": "four"}}]})",
       "plan at stages[0].map[1].pad_crop.pad: \"four\" where a whole number from -2147483648 to 2147483647 is "
       "needed"},
      {R"({"map": [{"pad_crop": {"pda": 4}}]})",
       "plan at stages[0].map[0].pad_crop: there is no option \"pda\": did you mean 'pad'? (it has size, pad, "
       "padding, masks, boxes, lost_boxes, with_boxes)"},
      {R"({"map": [{"pad_crop": {"padding": "mirror"}}]})",
       "plan at stages[0].map[0].pad_crop.padding: \"mirror\" is not among the choices (write zero or reflect)"},
      {R"({"map": [{"normalize": {"mean": [0.5, null]}}]})",
       "plan at stages[0].map[0].normalize.mean[1]: null where a number is needed"},
      {R"({"map": [{"normalize": {"mean": [1e39], "std": [1]}}]})",
       "plan at stages[0].map[0].normalize.mean[0]: 1e+39 where a number of at most 3.4028235e+38 is needed"},
      {R"({"map": [{"flatten": {"x": 1}}]})",
       "plan at stages[0].map[0].flatten: there is no option \"x\" (it has no options: write {})"},
      {R"({"map": []})", "plan at stages[0].map: a map without operations (leave it out)"},
      {R"({"map": {"flip": {}}})", "plan at stages[0].map: an object where a list is needed (write it as [...])"},
      {R"({"map": [{"flip": {}, "cast": {}}]})",
       "plan at stages[0].map[0]: an operation is an object with one member, its name, and this has 2"},
      {R"({"shuffle": {"seed": -1}})",
       "plan at stages[0].shuffle.seed: -1 where a whole number from 0 to 18446744073709551615 is needed"},
      {R"({"shuffle": {"seed": 18446744073709551616}})", "plan at stages[0].shuffle.seed: 1.8446744073709552e+19"},
      {R"({"shuffle": {"seed": 1.0}})", "plan at stages[0].shuffle.seed: 1.0 where a whole number"},
      {R"({"shuffle": {"reshuffle_each_epoch": 1}})",
       "plan at stages[0].shuffle.reshuffle_each_epoch: 1 where true or false is needed"},
      {R"({"shuffle": 7})", "plan at stages[0].shuffle: 7 where an object is needed (write it as {...})"},
      {R"({"take": {}})", "plan at stages[0].take: 'count' is missing"},
      {R"({"select": {}})", "plan at stages[0].select: 'numbers' is missing"},
      {R"({"select": {"numbers": [0, -1]}})",
       "plan at stages[0].select.numbers[1]: -1 where a whole number from 0"},
      {R"({"repeat": {"times": 0}})", "plan at stages[0]: repeat(0): at least one pass is needed"},
      {R"({"shard": {"count": 2, "index": 2}})", "plan at stages[0]: shard(2, 2): the index must be below"},
      {R"({"cache": {"tape": {}}})", "plan at stages[0].cache: there is no cache \"tape\" (write memory or disk)"},
      {R"({"filter": {"labels": 3}})", "plan at stages[0].filter.labels: 3 where a list is needed"},
      {R"({"filter": {}})", "plan at stages[0].filter: 'labels' is missing"},
      {R"(7)", "plan at stages[0]: 7 where an object is needed"},
      {R"({"decode": {"height": 3}})", "plan at stages[0]: decode(3 x 0): no image has this size"},
  };
  for (const auto& [stages, refusal] : all) EXPECT_THAT(refusal_of_stages(stages), StartsWith(refusal));
}

TEST_F(PlanJsonErrors, SayWhatThereIs) {
  EXPECT_THAT(
      refusal_of_stages(R"({"shufle": {}})"),
      AllOf(StartsWith("plan at stages[0]: there is no stage \"shufle\": did you mean 'shuffle'? (write batch, "
                       "bucket_by_length, cache, decode, "),
            HasSubstr("unbatch, window or without_shard")));
  EXPECT_THAT(
      refusal_of_stages(R"({"map": [{"Flip": {}}]})"),
      AllOf(StartsWith("plan at stages[0].map[0]: there is no operation \"Flip\": did you mean 'flip'? (write "
                       "named, pad_crop, "),
            HasSubstr("one_hot, mixup or cutmix")));
  EXPECT_THAT(refusal_of(R"({"headrace_plan": 2, "source": {"parquet": {}}})"),
              AllOf(StartsWith("plan at source: there is no source \"parquet\" (write named, concatenate, "),
                    HasSubstr("image_folder")));
}

// Stages that make no sense together are told at the first that makes none, as the planner tells it.
TEST_F(PlanJsonErrors, NameTheStageThatMakesNoSense) {
  EXPECT_THAT(refusal_of_stages(R"({"shuffle": {}}, {"map": [{"pad_crop": {"pad": -1}}]}, {"batch": {}})"),
              StartsWith("plan at stages[1]: pad_crop(size=32, pad=-1, padding=zero)"));
  EXPECT_THAT(refusal_of_stages(R"({"batch": {}}, {"prefetch": {"batches": 1}}, {"batch": {"global_batch": 2}})"),
              StartsWith("plan at stages[2]: batch(global_batch=2, drop_remainder=false) stands after batch(32)"));
  EXPECT_THAT(refusal_of_stages(R"({"map": [{"mixup": {}}]}, {"padded_batch": {}})"),
              StartsWith("plan at stages[0]: mixup("));
  EXPECT_THAT(refusal_of_stages(R"({"decode": {}})"), StartsWith("plan at stages[0]: decode(): no field is"));
}

TEST_F(PlanJsonErrors, OfCombinations) {
  const auto of = [&](const std::string& source) {
    return refusal_of(R"({"headrace_plan": 2, "source": )" + source + "}");
  };
  EXPECT_THAT(of(R"({"mix": {"parts": [{"source": {"named": "images"}},
                                       {"source": {"named": "images"}, "stages": [{"take": {"count": "x"}}]}]}})"),
              StartsWith("plan at source.mix.parts[1].stages[0].take.count: \"x\" where a whole number"));
  EXPECT_THAT(of(R"({"zip": {"parts": [{"source": {"named": "images"}}, {"source": {"named": "images"}}]}})"),
              StartsWith("plan at source.zip: zip(): two datasets have a field 'image'"));
  EXPECT_THAT(of(R"({"mix": {"parts": [{"source": {"named": "images"}}], "weights": [0]}})"),
              StartsWith("plan at source.mix: mix(): the weight 0 is not above 0"));
  EXPECT_THAT(of(R"({"concatenate": {}})"), StartsWith("plan at source.concatenate: 'parts' is missing"));
  EXPECT_THAT(of(R"({"concatenate": {"parts": []}})"),
              StartsWith("plan at source.concatenate: concatenate() was given no datasets"));
  EXPECT_THAT(of(R"({"interleave": {"parts": [{"stages": []}]}})"),
              StartsWith("plan at source.interleave.parts[0]: 'source' is missing"));
  EXPECT_THAT(of(R"({"open": {}})"), StartsWith("plan at source.open: 'path' is missing"));
  EXPECT_THAT(of(R"({"open": {"path": ""}})"), StartsWith("plan at source.open.path: \"\" is no path"));
  EXPECT_THAT(of(R"({"open": {"path": "a\u0000b"}})"), HasSubstr("is no path"));
  EXPECT_THAT(of(R"({"open": {"path": "x", "spilt": "train"}})"),
              StartsWith("plan at source.open: there is no option \"spilt\": did you mean 'split'? (it has path, "
                         "split, classes_at"));
}

TEST_F(PlanJsonErrors, OfTheWholeText) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"", "plan: is no JSON: line 1, column 1"},
      {"{\n  \"a\": [1,\n  }", "plan: is no JSON: line 3, column 3"},
      {"[]", "plan: a list where an object is needed"},
      {"{}", "plan: 'headrace_plan' is missing: this is no plan"},
      {R"({"headrace_plan": 1})", "plan at headrace_plan: version 1 of the format; this Headrace reads version 2"},
      {R"({"headrace_plan": "1"})", "plan at headrace_plan: version \"1\" of the format"},
      {R"({"headrace_plan": 2})", "plan: 'source' is missing"},
      {R"({"headrace_plan": 2, "source": {"named": "images"}, "epochs": 3})",
       "plan: there is no option \"epochs\" (it has source, stages, headrace_plan)"},
      {R"({"headrace_plan": 2, "source": 1, "source": 2})", "plan: \"source\" occurs twice in one object"},
      {R"({"headrace_plan": 1e999})", "plan: is no JSON: "},
      {R"({"headrace_plan": NaN})", "plan: is no JSON: line 1, column 19"},
      {std::string(100'000, '['), "plan: nested deeper than 64 levels"},
      {"{\"headrace_plan\": 2, \"\xff\": 1}", "plan: is no JSON: "},
  };
  for (const auto& [text, refusal] : all) EXPECT_THAT(refusal_of(text), StartsWith(refusal)) << text.substr(0, 99);
}

// A chain that long would not be taken apart again without a deep stack.
TEST_F(PlanJsonErrors, OfTooManyStages) {
  std::string stages;
  for (int i = 0; i < 1001; ++i) stages += (i == 0 ? "" : ",") + std::string(R"({"take": {"count": 3}})");
  EXPECT_THAT(refusal_of_stages(stages), StartsWith("plan at stages[1000]: the plan has more than 1000 stages"));
  Dataset dataset = Dataset::from(parts_.sources.at("images"));
  for (int i = 0; i < 1001; ++i) dataset = dataset.take(3);
  EXPECT_THAT(message_of([&] { dataset.to_json(parts_); }), HasSubstr("more than 1000 stages"));
}

TEST_F(PlanJsonErrors, OfWhatCannotBeWritten) {
  const Dataset images = Dataset::from(parts_.sources.at("images"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message_of([&] {
                images.map(flip() | normalize({0.5F, nan}, {1, 1})).to_json(parts_);
              }),
              StartsWith("to_json(): stages[0].map[1].normalize.mean: nan is no number that JSON has"));
  EXPECT_THAT(message_of([&] { images.cache(disk("/tmp/\xff\xff")).to_json(parts_); }),
              StartsWith("to_json(): stages[0].cache.disk.folder: the text is no UTF-8"));
}

}  // namespace
}  // namespace headrace::test
