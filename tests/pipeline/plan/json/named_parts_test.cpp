// Code has no JSON: it is written by name where the caller holds it, and checked when it is read.
#include "headrace/devices/base/hash.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"

namespace headrace::test {
namespace {

Operations darker(std::uint32_t version = 1) {
  return user_map({.name = "darker",
                   .version = version,
                   .output = {.dtype = DType::kU8, .shape = {8, 8, 3}},
                   .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                     std::ranges::transform(in, out.begin(), [](std::byte value) { return value >> 1; });
                   }});
}

Operations sum() {
  return user_operation({.name = "sum",
                         .version = 3,
                         .inputs = {"label"},
                         .outputs = {{.name = "twice", .dtype = DType::kI64, .shape = {}}},
                         .function = [](UserSample& sample) {
                           const std::int64_t twice = 2 * sample.elements<std::int64_t>(0)[0];
                           sample.put(0, std::as_bytes(std::span(&twice, 1)));
                         }});
}

RecordFilter odd(std::uint32_t version = 1) {
  return {.name = "odd", .version = version, .keeps = [](const ExampleView& record) {
            return record.label() % 2 == 1;
          }};
}

class PlanJsonNamedParts : public ::testing::Test {
 protected:
  Dataset plan() const {
    return Dataset::from(parts_.sources.at("noise"))
        .filter(odd())
        .map(darker() | flip() | sum())
        .batch({.global_batch = 4});
  }
  std::string refusal_of(const std::string& json) const {
    return message_of([&] { Dataset::from_json(json, {.parts = parts_}); });
  }

  PlanParts parts_{.sources = {{"noise", noise_images(23, 8, 8)}},
                   .operations = {flip() | darker(), sum()},
                   .filters = {odd()}};
};

TEST_F(PlanJsonNamedParts, AreWrittenByName) {
  expect_same_stream(plan(), parts_);
  const std::string json = plan().to_json(parts_);
  EXPECT_THAT(json, HasSubstr(R"({"named": "darker", "version": 1})"));
  EXPECT_THAT(json, HasSubstr(R"({"named": "sum", "version": 3})"));
  EXPECT_THAT(json, HasSubstr(R"({"filter": {"named": "odd", "version": 1}})"));
  EXPECT_THAT(json, HasSubstr(R"({"named": "noise", "fingerprint": ")"));
}

TEST_F(PlanJsonNamedParts, AreNeeded) {
  const auto refusal_without = [&](auto&& take_away) {
    PlanParts fewer = parts_;
    take_away(fewer);
    return std::pair(message_of([&] { plan().to_json(fewer); }),
                     message_of([&] { Dataset::from_json(plan().to_json(parts_), {.parts = fewer}); }));
  };
  const auto [source, no_source] = refusal_without([](PlanParts& parts) { parts.sources.clear(); });
  EXPECT_THAT(source, StartsWith("to_json(): source: the source noise is code, which JSON cannot hold"));
  EXPECT_THAT(no_source, StartsWith("plan at source: the source \"noise\" is not among the parts"));
  const auto [operation, no_operation] = refusal_without([](PlanParts& parts) { parts.operations = {sum()}; });
  EXPECT_THAT(operation, StartsWith("to_json(): stages[1].map[0]: user_map('darker', version=1"));
  EXPECT_THAT(operation, HasSubstr("PlanParts::operations"));
  EXPECT_THAT(no_operation, StartsWith("plan at stages[1].map[0]: the operation \"darker\", version 1, is code"));
  EXPECT_THAT(no_operation, HasSubstr("holds \"sum\" version 3"));
  const auto [filter, no_filter] = refusal_without([](PlanParts& parts) { parts.filters.clear(); });
  EXPECT_THAT(filter, StartsWith("to_json(): stages[0].filter: filter(odd, version 1) is code"));
  EXPECT_THAT(no_filter, StartsWith("plan at stages[0].filter: the filter \"odd\", version 1, is code"));
}

TEST_F(PlanJsonNamedParts, OfAnotherVersionAreOthers) {
  const std::string json = plan().to_json(parts_);
  parts_.operations.front() = darker(2);
  EXPECT_THAT(refusal_of(json), StartsWith("plan at stages[1].map[0]: the operation \"darker\", version 1,"));
  EXPECT_THAT(refusal_of(json), HasSubstr("holds \"darker\" version 2 or \"sum\" version 3"));
  EXPECT_THAT(message_of([&] { plan().to_json(parts_); }), HasSubstr("stages[1].map[0]"));
  parts_.operations.push_back(darker(1));  // both
  EXPECT_EQ(Dataset::from_json(json, {.parts = parts_}).fingerprint(), plan().fingerprint());
  parts_.filters = {odd(2)};
  EXPECT_THAT(refusal_of(json), StartsWith("plan at stages[0].filter: the filter \"odd\", version 1,"));
}

// Without a version any will do.
TEST_F(PlanJsonNamedParts, MayLeaveTheVersionOut) {
  const std::string json = R"({"headrace_plan": 2, "source": {"named": "noise"}, "stages": [
    {"filter": {"named": "odd"}}, {"map": [{"named": "darker"}, {"flip": {}}, {"named": "sum"}]},
    {"batch": {"global_batch": 4}}]})";
  EXPECT_EQ(Dataset::from_json(json, {.parts = parts_}).fingerprint(), plan().fingerprint());
}

TEST_F(PlanJsonNamedParts, SourcesAreToldByTheirContent) {
  const std::string json = plan().to_json(parts_);
  parts_.sources["noise"] = noise_images(23, 8, 8);  // the same once more
  EXPECT_EQ(Dataset::from_json(json, {.parts = parts_}).fingerprint(), plan().fingerprint());
  EXPECT_EQ(plan().to_json(parts_), json);
  const std::string written = to_hex(parts_.sources["noise"]->info().fingerprint);
  parts_.sources["noise"] = noise_images(24, 8, 8);
  EXPECT_THAT(refusal_of(json), StartsWith("plan at source: the source \"noise\" has the fingerprint "));
  EXPECT_THAT(refusal_of(json), HasSubstr("and the plan was written for \"" + written + "\""));
}

TEST_F(PlanJsonNamedParts, HaveNoOtherOptions) {
  EXPECT_THAT(refusal_of(R"({"headrace_plan": 2, "source": {"named": "noise", "seed": 1}})"),
              StartsWith("plan at source: there is no option \"seed\" (it has named, fingerprint)"));
  EXPECT_THAT(refusal_of(R"({"headrace_plan": 2, "source": {"named": "noise"}, "stages": [
                {"map": [{"named": "sum", "version": "3"}]}]})"),
              StartsWith("plan at stages[0].map[0].version: \"3\" where a whole number"));
}

}  // namespace
}  // namespace headrace::test
