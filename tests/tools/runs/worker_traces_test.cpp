#include <nlohmann/json.hpp>

#include "headrace/tests/support/test.h"
#include "headrace/tools/runs/worker_run.h"

namespace headrace::tools {
namespace {

std::string trace_of(const char* name, std::uint64_t begin_ns) {
  Trace trace(4);
  trace.ring("loader").add({.name = name, .begin_ns = begin_ns, .end_ns = begin_ns + 500, .batch = 1, .items = 2});
  return trace.to_json();
}

// Worker 1's clock is 7 ms ahead: its span began 2 us after worker 0's.
TEST(WorkerTraces, AreOnTheChiefsClock) {
  const auto merged = nlohmann::json::parse(
      merge_traces({trace_of("read", 1'000'000), trace_of("decode", 8'002'000)}, {0, 7'000'000}, {"a", "b"}));
  std::map<std::string, nlohmann::json> events;
  for (const nlohmann::json& event : merged["traceEvents"]) {
    if (event["ph"] == "X") events[event["name"]] = event;
    if (event["name"] == "process_name" && event["pid"] == 2) {
      EXPECT_EQ(event["args"]["name"], "b");
    }
  }
  EXPECT_EQ(events["read"]["pid"], 1);
  EXPECT_DOUBLE_EQ(events["read"]["ts"], 0);
  EXPECT_EQ(events["decode"]["pid"], 2);
  EXPECT_DOUBLE_EQ(events["decode"]["ts"], 2);
  EXPECT_DOUBLE_EQ(events["decode"]["dur"], 0.5);
  EXPECT_EQ(merged["otherData"]["dropped"], 0);
}

}  // namespace
}  // namespace headrace::tools
