#include <nlohmann/json.hpp>

#include "headrace/devices/base/trace.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(TraceRing, KeepsTheLatestSpans) {
  TraceRing ring("reader", 4);
  EXPECT_TRUE(ring.spans().empty());
  for (std::uint64_t i = 0; i < 10; ++i) ring.add({.name = "read", .begin_ns = i, .end_ns = i + 1, .batch = i});
  const std::vector<TraceSpan> spans = ring.spans();
  ASSERT_EQ(spans.size(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(spans[i].batch, 6 + i);
  EXPECT_EQ(ring.dropped(), 6U);
}

// Every field of a span is derived from its number: a torn one would show.
TEST(TraceRing, IsReadWhileItIsWritten) {
  TraceRing ring("compute", 64);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop.load(); ++i) {
      ring.add({.name = "rows", .begin_ns = i, .end_ns = 2 * i, .batch = 3 * i, .items = 4 * i});
    }
  });
  while (ring.dropped() == 0) std::this_thread::yield();
  for (int looks = 0; looks < 2000; ++looks) {
    std::uint64_t last = 0;
    for (const TraceSpan& span : ring.spans()) {
      ASSERT_GT(span.begin_ns, last);
      last = span.begin_ns;
      ASSERT_EQ(span.end_ns, 2 * span.begin_ns);
      ASSERT_EQ(span.batch, 3 * span.begin_ns);
      ASSERT_EQ(span.items, 4 * span.begin_ns);
    }
  }
  stop.store(true);
  writer.join();
}

TEST(Trace, KeepsNamesOnce) {
  Trace trace(1);
  const char* kept = nullptr;
  {
    const std::string name = "map 'resize to a longer name than fits in place'";
    kept = trace.keep(name);
    EXPECT_NE(kept, name.c_str());
    EXPECT_EQ(trace.keep(name), kept);
  }
  EXPECT_NE(trace.keep("map 'flip'"), kept);
  EXPECT_STREQ(kept, "map 'resize to a longer name than fits in place'");
}

TEST(Trace, IsJsonOfEveryThread) {
  Trace trace(2);
  TraceRing& first = trace.ring("compute \"0\"\n");
  TraceRing& second = trace.ring("reader \xC3\xBC");
  trace.ring("idle");
  first.add({.name = "map 'a\\b'", .begin_ns = 5'000, .end_ns = 7'500, .batch = 3, .items = 8});
  for (std::uint64_t i = 0; i < 3; ++i) second.add({.name = "read", .begin_ns = 4'000 + i, .end_ns = 6'000});

  const nlohmann::json json = nlohmann::json::parse(trace.to_json());
  EXPECT_EQ(json["otherData"]["dropped"], 1);
  int names = 0, spans = 0;
  for (const nlohmann::json& event : json["traceEvents"]) {
    if (event["ph"] == "M") {
      ++names;
      continue;
    }
    ++spans;
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"], 0);
    if (event["tid"] != 1) continue;
    EXPECT_EQ(event["name"], "map 'a\\b'");
    EXPECT_NEAR(event["ts"].get<double>(), 0.999, 1e-9);  // after the oldest span that was kept, at 4,001 ns
    EXPECT_NEAR(event["dur"].get<double>(), 2.5, 1e-9);
    EXPECT_EQ(event["args"]["batch"], 3);
    EXPECT_EQ(event["args"]["items"], 8);
  }
  EXPECT_EQ(names, 3);
  EXPECT_EQ(spans, 3);
}

TEST(Trace, WithoutSpansIsStillJson) {
  Trace trace(1);
  EXPECT_TRUE(nlohmann::json::parse(trace.to_json())["traceEvents"].empty());
}

}  // namespace
}  // namespace headrace::test
