// What a process knows of itself: its memory, modules and trace.
#include <nlohmann/json.hpp>

#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/base/trace.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(LargeMemory, IsAlignedAndAllThere) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{100'000},
                                  (std::size_t{2} << 20) - 1, std::size_t{2} << 20, (std::size_t{7} << 20) + 13}) {
    const LargeMemory memory = allocate_large(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 64, 0U);
    std::memset(memory.get(), 0x5a, bytes);
    EXPECT_EQ(std::to_integer<int>(memory.get()[bytes - 1]), 0x5a);
  }
}

TEST(LargeMemory, IsNullWhereThereIsNone) {
#if defined(HEADRACE_SANITIZED)
  GTEST_SKIP() << "the sanitizers' own allocators end the program";
#endif
  EXPECT_EQ(allocate_large(std::numeric_limits<std::size_t>::max() / 4), nullptr);
}

constexpr std::size_t kSlabBytes = 4096;

TEST(ByteSlabsTest, PiecesAreAlignedApartAndStayWhereTheyAre) {
  ByteSlabs slabs(kSlabBytes);
  std::vector<std::span<std::byte>> pieces;
  // Small ones within slabs, at the border between both kinds, and larger than a slab.
  for (int round = 0; round < 20; ++round) {
    for (const std::size_t size : {1U, 15U, 16U, 17U, 511U, 512U, 513U, 4096U, 10000U}) {
      const std::span<std::byte> piece = slabs.allocate(size);
      ASSERT_EQ(piece.size(), size);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data()) % ByteSlabs::kAlignment, 0U);
      std::ranges::fill(piece, static_cast<std::byte>(pieces.size()));
      pieces.push_back(piece);
    }
  }
  const ByteSlabs moved = std::move(slabs);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(std::ranges::all_of(pieces[i], [i](std::byte byte) { return byte == static_cast<std::byte>(i); }))
        << "piece " << i << " of " << pieces[i].size() << " bytes was written over";
  }
}

TEST(ByteSlabsTest, AnEmptyPieceTakesNothing) {
  ByteSlabs slabs(kSlabBytes);
  EXPECT_EQ(slabs.allocate(0).size(), 0U);
  const std::byte* first = slabs.allocate(16).data();
  EXPECT_EQ(slabs.allocate(0).size(), 0U);
  EXPECT_EQ(slabs.allocate(16).data(), first + 16);
}

TEST(SharedModule, AnAbsentFileIsSaidInTheLinkersWords) {
  const SharedModule module = open_shared_module("/nowhere/module.so", "entry");
  EXPECT_EQ(module.entry, nullptr);
  EXPECT_THAT(module.missing, HasSubstr("it could not be opened: /nowhere/module.so"));
}

TEST(SharedModule, AFileThatIsNoLibraryIsRefused) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "shared module.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(open_shared_module(path, "entry").missing, HasSubstr("could not be opened"));
  std::filesystem::remove(path);
}

TEST(SharedModule, ALibrarysFunctionIsFoundByItsName) {
  const SharedModule module = open_shared_module("libm.so.6", "cos");
  ASSERT_NE(module.entry, nullptr) << module.missing;
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(module.entry)(0.0), 1.0);
  EXPECT_EQ(module.missing, "");
  const SharedModule other = open_shared_module("libm.so.6", "headrace_backend");
  EXPECT_EQ(other.entry, nullptr);
  EXPECT_THAT(other.missing, HasSubstr("exports no headrace_backend"));
}

void some_function() {}

TEST(SharedModule, CodeKnowsItsFolder) {
  const auto folder = folder_of_code(reinterpret_cast<const void*>(&some_function));
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_TRUE(std::filesystem::equivalent(folder / program.filename(), program)) << folder;
  EXPECT_EQ(folder_of_code(nullptr), "");
}

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
